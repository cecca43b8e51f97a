"""The log of touched rows answers in two ways, and both mean the same rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.core.state.touchlog import TouchLog


def log_of(rows: list[int]) -> TouchLog:
    log = TouchLog()
    for row in rows:
        log.touch(row)
    return log


@given(
    st.sampled_from([63, 300, 6000]),
    st.lists(st.integers(0, 300), max_size=40),
    st.lists(st.integers(0, 60), max_size=200),
)
def test_rows_touched_after_a_mark_are_found_once_each(highest: int, before: list[int], after: list[int]) -> None:
    log = log_of([highest, *before])
    mark = log.mark
    for row in after:
        log.touch(row)
    assert sorted(log.rows_since(mark).tolist()) == sorted(set(after))
    assert log.since(mark) == after
    few = log.few_since(mark, 3)
    rows = sorted(set(after))
    assert few is None or sorted(few) == rows
    assert (few is None) is (len(rows) > 3 or len(after) > 12)


def test_a_row_that_was_not_touched_keeps_its_time() -> None:
    log = log_of([5, 900])
    before = log.last(5), log.last(900), log.last(7), log.last(100_000)
    log.touch(900)
    assert (log.last(5), log.last(7), log.last(100_000)) == (before[0], 0, 0)
    assert log.last(900) > before[1]


def test_what_the_list_has_forgotten_the_column_still_knows() -> None:
    log = log_of([3])
    for row in range(70_000):
        log.touch(row % 100 + 10)
    assert log.since(0) is None
    assert log.rows_since(0).tolist() == [3, *range(10, 110)]
