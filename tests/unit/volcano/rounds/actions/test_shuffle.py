"""shuffle: whom plugins name is evicted, at once and without a trial."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.round import Task
from fairlead.volcano.rounds.tiers import TierPlugin
from tests.support.rounds import RoundScenario, evicted


class Names(TierPlugin):
    """Names tasks to be evicted."""

    def __init__(self, name: str, *victims: str) -> None:
        self.name = name
        self._victims = victims

    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        return [task for task in tasks if task.name in self._victims]


def square() -> RoundScenario:
    return RoundScenario(a="8").queue("default").job("j").runs("j", *"aaa", cpu="1").waits("j", 1, cpu="1")


def test_all_who_are_named_in_the_first_tier_that_names_anybody_go() -> None:
    tiers = [[Names("none")], [Names("one", "j-0"), Names("two", "j-2", "j-0")], [Names("three", "j-1")]]
    round = square().act("shuffle", tiers=tiers)
    assert evicted(round) == ["j-0", "j-2"]
    assert {reason for _, reason in round.outcome.evictions} == {"shuffle"}
    assert round.jobs["default/j"].counts.of(TaskStatus.RELEASING) == 2


def test_only_running_tasks_can_be_named() -> None:
    assert evicted(square().act("shuffle", tiers=[[Names("one", "j-3")]])) == []
