"""Bindings that wait for an answer of the API alone are not looked through in every step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from fairlead.core.engine.cycle.binding import Binding, BindingStage
from fairlead.core.engine.cycle.under_way import BindingsUnderWay

ALIVE = np.ones(4, dtype=np.bool_)


class CountedBinding:
    """What BindingsUnderWay reads of a Binding; `asked` is how often it was asked when to wake it."""

    def __init__(self, uid: str, stage: BindingStage, at: float | None = None) -> None:
        self.entry = SimpleNamespace(pod=SimpleNamespace(uid=uid))
        self.stage, self.at, self.row, self.asked = stage, at, 0, 0

    def wake_at(self) -> float | None:
        self.asked += 1
        return self.at


def under_way(*bindings: CountedBinding) -> BindingsUnderWay:
    found = BindingsUnderWay(most_unanswered=1000)
    for binding in bindings:
        found[binding.entry.pod.uid] = cast("Binding", binding)
        found.attend(cast("Binding", binding))
    return found


def test_three_thousand_binds_in_flight_are_asked_nothing_by_a_step() -> None:
    flying = [CountedBinding(f"f{at}", BindingStage.BINDING) for at in range(3000)]
    held = CountedBinding("held", BindingStage.HELD, 7.0)
    found = under_way(*flying, held)
    for binding in (*flying, held):
        binding.asked = 0
    for _ in range(10):
        assert found.wake_at() == 7.0
        assert found.due(6.0, ALIVE) == found.preparing() == found.ended() == []
        assert found.due(7.0, ALIVE) == [held]
    assert sum(binding.asked for binding in flying) == 0
    assert found.unanswered == 3000


def test_a_bind_that_is_to_be_sent_again_is_looked_at_until_it_is_sent() -> None:
    binding: Any = CountedBinding("a", BindingStage.BINDING)
    found = under_way(binding)
    assert found.wake_at() is None
    binding.at = 3.0
    found.attend(binding)
    assert found.due(3.0, ALIVE) == [binding]
    binding.at = None
    found.attend(binding)
    assert found.wake_at() is None
    found.end(binding)
    assert not found
