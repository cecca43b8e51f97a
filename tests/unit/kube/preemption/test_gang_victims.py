"""Which units are evicted first to make room for a gang."""

from __future__ import annotations

from dataclasses import replace

from fairlead.core.framework.gang import Unit
from fairlead.kube.preemption.gang_victims import by_importance
from tests.support.documents import compiled, pod
from tests.support.preemption import NOW

EARLY, LATE = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"


def unit(name: str, *started: str, priority: int = 0, group: bool = False) -> Unit:
    spec = {"schedulingGroup": {"podGroupName": name}} if group else {}
    pods = tuple((compiled(pod(f"{name}{i}", started=start, **spec)), 0) for i, start in enumerate(started or ("",)))
    return Unit(pods, priority, group=name if group else "")


def order(*units: Unit) -> list[str]:
    return [one.pods[0][0].name.rstrip("0123456789") for one in by_importance(units, NOW)]


def test_units_are_ordered_by_priority_then_groups_then_size_then_age() -> None:
    small, large = unit("small", EARLY, group=True), unit("large", LATE, LATE, group=True)
    late, early, high = unit("late", LATE), unit("early", EARLY), unit("high", priority=1)
    assert order(late, early, small, large, high) == ["high", "large", "small", "early", "late"]


def test_a_pod_of_a_group_that_goes_alone_is_a_group_of_one() -> None:
    """It comes before pods without a group, however old they are, and after any group that goes as a whole."""
    alone, whole = unit("alone", EARLY), unit("whole", LATE, LATE, group=True)
    ones = [replace(unit(name, start, group=True), group="") for name, start in (("late", LATE), ("early", EARLY))]
    assert order(alone, *ones, whole) == ["whole", "early", "late", "alone"]


def test_of_any_number_that_have_not_started_the_first_met_counts_as_the_oldest() -> None:
    names = [chr(ord("a") + i) for i in range(20)]
    assert order(*(unit(name) for name in names)) == names


def test_a_group_is_as_old_as_the_first_of_its_pods_that_is_met() -> None:
    assert order(unit("a", LATE, EARLY, group=True), unit("b", EARLY, LATE, group=True)) == ["b", "a"]
