"""The keys that are due come in the order of a plain sorted list, however far apart they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.cluster.controllers.due_keys import DueKeys

dues = st.one_of(
    st.floats(0, 300), st.integers(0, 3).map(lambda span: span * 64.0), st.floats(1e9, 1e9 + 1e6), st.floats(-100, 0)
)
steps = st.lists(st.one_of(dues, st.none()), max_size=60)


@given(steps)
def test_entries_come_out_by_time_and_then_in_the_order_in_which_they_were_added(steps: list[float | None]) -> None:
    keys: DueKeys[int] = DueKeys()
    expected: list[tuple[float, int]] = []
    for number, due in enumerate([*steps, *[None] * len(steps)]):
        if due is not None:
            keys.add(due, number)
            expected = sorted([*expected, (due, number)])
            continue
        assert keys.first() == (expected[0] if expected else None)
        if expected:
            keys.drop_first()
            del expected[0]


def test_what_is_never_due_is_not_kept() -> None:
    keys: DueKeys[str] = DueKeys()
    keys.add(float("inf"), "never")
    assert keys.first() is None
