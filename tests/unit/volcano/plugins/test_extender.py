"""extender: what is asked, and what becomes of answers and of silence."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.errors import ExtenderError
from fairlead.volcano.plugins.extender import VERBS, ExtenderRules, VolcanoExtender
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.tiers import Vote
from tests.support.rounds import RoundScenario, refusals, scores, task


class Told:
    """An extender that answers what it was told to, and otherwise not at all."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Any]] = []

    def post(self, verb: str, body: Any) -> Any:
        self.asked.append((verb, body))
        answer = self.answers.get(verb)
        if answer is None:
            raise ExtenderError("no answer")
        return answer(body) if callable(answer) else answer


def extender(wire: Told, *verbs: str, **arguments: Any) -> VolcanoExtender:
    given = {f"extender.{verb}Verb": verb for verb in verbs or VERBS}
    given |= {f"extender.{name}": value for name, value in arguments.items()}
    return VolcanoExtender(wire, ExtenderRules.of(Arguments(given)))


def yard() -> RoundScenario:
    made = RoundScenario().node("a").node("b").queue("default").group("job", phase="Pending", minResources={"cpu": "1"})
    return made.pod("x", "job").pod("w", "job", on="a")


def test_nodes_are_refused_and_scored_one_by_one() -> None:
    def judge(body: Any) -> Any:
        return {"status": "not here", "code": 3} if body["node"]["Name"] == "b" else {}

    wire = Told(predicate=judge, prioritize={"nodeScore": {"a": 7, "b": 2}})
    plugin = extender(wire, "predicate", "prioritize")
    round = yard().open(plugin)
    assert refusals(plugin, round, "x") == {"b": ["not here"]}
    assert scores(plugin, round, "x") == {"a": 7, "b": 2}
    asked = wire.asked[0][1]
    assert asked["task"]["Resreq"]["MilliCPU"] == 1000
    assert asked["node"]["Idle"]["MilliCPU"] == 7000


def test_victims_are_named_by_uid_and_status_zero_abstains() -> None:
    wire = Told(preemptable={"status": 1, "victims": [{"UID": "w"}]}, reclaimable={"status": 0})
    plugin = extender(wire, "preemptable", "reclaimable")
    round = yard().open(plugin)
    candidates = [task(round, "w")]
    assert plugin.preemptable(task(round, "x"), candidates) == candidates
    assert plugin.reclaimable(task(round, "x"), candidates) is None


def test_job_and_queue_questions_are_sent_to_the_extender() -> None:
    wire = Told(jobEnqueueable={"status": -1}, queueOverused={"overused": True}, jobReady={"status": False})
    plugin = extender(wire, "jobEnqueueable", "queueOverused", "jobReady")
    round = yard().open(plugin)
    job = round.jobs["default/job"]
    assert plugin.job_enqueueable(job) is Vote.REJECT
    assert plugin.overused(round.queues["default"])
    assert not plugin.job_ready(job)


def test_without_an_answer_all_is_refused_unless_it_can_be_ignored() -> None:
    verbs = [verb for verb in VERBS if not verb.startswith("onSession")]
    for ignorable in (False, True):
        plugin = extender(Told(), *verbs, ignorable=ignorable)
        round = yard().open(plugin)
        job = round.jobs["default/job"]
        assert (plugin.job_enqueueable(job) is Vote.PERMIT) is ignorable
        assert plugin.overused(round.queues["default"]) is not ignorable
        assert plugin.job_ready(job) is ignorable
        assert (plugin.allocated(task(round, "x")) is None) is ignorable
        assert plugin.preemptable(task(round, "x"), [task(round, "w")]) == []


@pytest.mark.parametrize(("compatible", "asked"), [(False, True), (True, False)])
def test_a_round_it_was_not_called_for_is_judged_by_it_all_the_same(compatible: bool, asked: bool) -> None:
    wire = Told(queueOverused={"overused": True})
    plugin = extender(wire, "onSessionOpen", "queueOverused")
    round = yard().open(plugin, compatible=compatible)
    assert plugin.overused(round.queues["default"]) is asked


def test_compatible_rounds_take_silence_for_readiness() -> None:
    plugin = extender(Told(), "jobReady")
    round = yard().open(plugin, compatible=True)
    assert plugin.job_ready(round.jobs["default/job"])


def test_it_is_asked_only_about_what_it_manages() -> None:
    wire = Told(preemptable={"status": 1, "victims": []})
    plugin = extender(wire, "preemptable", managedResources=["nvidia.com/gpu"])
    round = yard().pod("gpu", "job", asks={"nvidia.com/gpu": "1"}).open(plugin)
    assert plugin.preemptable(task(round, "x"), []) is None
    assert plugin.preemptable(task(round, "gpu"), []) == []
    assert len(wire.asked) == 1


def test_verbs_that_it_does_not_have_are_not_asked() -> None:
    wire = Told()
    plugin = extender(wire, "jobReady")
    round = yard().open(plugin)
    assert plugin.job_enqueueable(round.jobs["default/job"]) is Vote.ABSTAIN
    assert not plugin.overused(round.queues["default"])
    assert refusals(plugin, round, "x") == {}
    assert plugin.allocated(task(round, "x")) is None
    assert wire.asked == []


def test_it_is_reported_of_the_beginning_and_the_end_of_a_round() -> None:
    wire = Told(onSessionOpen={}, onSessionClose={})
    plugin = extender(wire, "onSessionOpen", "onSessionClose")
    plugin.close(yard().open(plugin))
    (opened, body), (closed, _) = wire.asked
    assert (opened, closed) == ("onSessionOpen", "onSessionClose")
    assert body["Jobs"].keys() == {"default/job"}
    assert body["Nodes"].keys() == {"a", "b"}
