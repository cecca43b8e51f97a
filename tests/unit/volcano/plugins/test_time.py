"""Plugins that go by the clock: sla, tdm and cdp."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.volcano.plugins.cdp import CooldownProtection
from fairlead.volcano.plugins.sla import Sla
from fairlead.volcano.plugins.tdm import TimeDivision, most_evicted
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.tiers import Vote
from tests.support.rounds import NOW, RoundScenario, refusals, scores, task

ZONE = "volcano.sh/revocable-zone"
PREEMPTABLE = "volcano.sh/preemptable"


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


# ---- sla ----


def test_a_deadline_comes_before_none_and_an_earlier_one_first() -> None:
    yard = RoundScenario().queue("default").group("none", created="2026-01-01T00:00:00Z")
    yard.group("late", created="2026-01-01T00:00:00Z", annotations={"sla-waiting-time": "2h"})
    yard.group("soon", created="2026-01-01T00:30:00Z", annotations={"volcano.sh/sla-waiting-time": "1h"})
    plugin = Sla()
    jobs = yard.open(plugin).jobs
    none, late, soon = (jobs[f"default/{name}"] for name in ("none", "late", "soon"))
    assert plugin.job_order(soon, late) < 0 < plugin.job_order(none, soon)
    assert plugin.job_order(none, none) == 0


def test_who_waited_long_enough_is_let_in() -> None:
    yard = RoundScenario().queue("default").group("job", created="2026-01-01T00:00:00Z")
    plugin = Sla.of(Arguments({"sla-waiting-time": "1h"}))
    for now, vote in (("2026-01-01T00:59:59", Vote.ABSTAIN), ("2026-01-01T01:00:00", Vote.PERMIT)):
        job = yard.open(plugin, now=at(now)).jobs["default/job"]
        assert plugin.job_enqueueable(job) is vote
        assert plugin.job_pipelined(job) is vote


@pytest.mark.parametrize("text", ["", "soon", "-1h", "0s"])
def test_what_is_no_time_promises_nothing(text: str) -> None:
    yard = RoundScenario().queue("default").group("job", created="2026-01-01T00:00:00Z")
    plugin = Sla.of(Arguments({"sla-waiting-time": text}))
    assert plugin.job_enqueueable(yard.open(plugin).jobs["default/job"]) is Vote.ABSTAIN


# ---- tdm ----


def zones() -> RoundScenario:
    yard = RoundScenario().node("own").node("night", {ZONE: "night"}).node("odd", {ZONE: "odd"}).queue("default")
    yard.group("lender").group("borrower", annotations={PREEMPTABLE: "true"})
    yard.pod("steady", "lender", annotations={PREEMPTABLE: "false"})
    yard.pod("guest", "borrower", annotations={PREEMPTABLE: "true"})
    return yard


def night() -> TimeDivision:
    return TimeDivision({"night": "20:00-06:00"}, period=120.0, clock=UTC)


def test_a_zone_is_open_at_its_hours_to_those_who_may_be_evicted() -> None:
    plugin = night()
    round = zones().open(plugin, now=at("2026-01-01T22:00:00"))
    assert refusals(plugin, round, "guest") == {"odd": ["revocable zone odd not support"]}
    assert refusals(plugin, round, "steady") == {
        "odd": ["revocable zone odd not support"],
        "night": ["not allow to dispatch to revocable node"],
    }
    assert scores(plugin, round, "guest") == {"own": 0, "night": 100, "odd": 0}
    assert scores(plugin, round, "steady") == {"own": 0, "night": 0, "odd": 0}


def test_a_zone_is_closed_outside_its_hours() -> None:
    plugin = night()
    round = zones().open(plugin, now=at("2026-01-01T12:00:00"))
    assert refusals(plugin, round, "guest")["night"] == ["current time beyond revocable zone night:20:00-06:00"]


@pytest.mark.parametrize(
    ("hours", "time", "compatible", "is_open"),
    [
        ("20:00-06:00", "2026-01-02T03:00:00", False, True),
        ("20:00-06:00", "2026-01-02T03:00:00", True, False),
        ("20:00-06:00", "2026-01-02T06:00:01", False, False),
        ("08:00-18:00", "2026-01-02T18:00:00.9", False, True),
        ("08:00-18:00", "2026-01-02T18:00:01", False, False),
        ("08:00-18:00", "2026-01-02T07:59:59", True, False),
        ("08:00-08:00", "2026-01-02T07:59:59", False, True),
    ],
)
def test_hours_may_go_on_after_midnight(hours: str, time: str, compatible: bool, is_open: bool) -> None:
    plugin = TimeDivision({"night": hours}, clock=UTC)
    round = zones().open(plugin, now=at(time), compatible=compatible)
    assert ("night" not in refusals(plugin, round, "guest")) is is_open


def test_arguments_name_zones_and_hours() -> None:
    arguments = Arguments({"tdm.revocable-zone.night": "00:00-00:00", "tdm.evict.period": "2m"})
    plugin = TimeDivision.of(arguments)
    round = zones().open(plugin)
    assert "night" not in refusals(plugin, round, "guest"), "all day, whatever the time zone"


def test_who_may_be_evicted_comes_after_who_may_not_and_never_starves() -> None:
    plugin = night()
    jobs = zones().open(plugin).jobs
    lender, borrower = jobs["default/lender"], jobs["default/borrower"]
    assert plugin.job_order(lender, borrower) < 0
    assert plugin.job_starving(lender)
    assert not plugin.job_starving(borrower)


def test_guests_are_evicted_when_the_hours_are_over_a_few_at_a_time() -> None:
    yard = zones().group("borrower", annotations={PREEMPTABLE: "true", "volcano.sh/jdb-max-unavailable": "50%"})
    for number in range(3):
        yard.pod(f"g{number}", "borrower", on="night", annotations={PREEMPTABLE: "true"})
    plugin = night()
    day = at("2026-01-01T12:00:00")
    round = yard.open(plugin, now=day)
    assert len(plugin.victim_tasks([])) == 1, "of 4 tasks 2 may be missing, and one is"
    assert plugin.victim_tasks([]) == [], "not again within the period"
    plugin.open(yard.open(plugin, now=day + 121))
    assert len(plugin.victim_tasks([])) == 1
    assert task(round, "g0").job is round.jobs["default/borrower"]


def test_a_steady_pod_preempts_guests_on_nodes_of_its_own() -> None:
    yard = zones().pod("g1", "borrower", on="own", annotations={PREEMPTABLE: "true"})
    yard.pod("g2", "borrower", on="night", annotations={PREEMPTABLE: "true"})
    plugin = night()
    round = yard.open(plugin)
    candidates = [task(round, "g1"), task(round, "g2")]
    assert [victim.name for victim in plugin.preemptable(task(round, "steady"), candidates)] == ["g1"]
    assert plugin.preemptable(task(round, "guest"), candidates) == []


@pytest.mark.parametrize(
    ("annotations", "most"),
    [
        ({}, 1),
        ({"volcano.sh/jdb-min-available": "1"}, 2),
        ({"volcano.sh/jdb-min-available": "5"}, 1),
        ({"volcano.sh/jdb-max-unavailable": "1"}, 0),
        ({"volcano.sh/jdb-max-unavailable": "3"}, 2),
    ],
)
def test_budgets_say_how_many_go_at_once(annotations: dict[str, str], most: int) -> None:
    yard = RoundScenario().node("n").queue("default").group("job", annotations=annotations)
    for number in range(3):
        yard.pod(f"p{number}", "job", on="n")
    yard.pod("waiting", "job")
    assert most_evicted(yard.open().jobs["default/job"]) == most


# ---- cdp ----


def scheduled(since: str, status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": "PodScheduled", "status": status, "lastTransitionTime": since}]}


def test_a_pod_that_was_placed_a_moment_ago_is_left_alone() -> None:
    cooling, fresh, old = {"volcano.sh/cooldown-time": "5m"}, "2027-01-15T07:59:30Z", "2027-01-15T07:00:00Z"
    yard = RoundScenario().node("n").queue("default").group("job").pod("x", "job")
    yard.pod("fresh", "job", on="n", labels=cooling, status=scheduled(fresh) | {"startTime": old})
    yard.pod("told", "job", on="n", annotations=cooling, status=scheduled(fresh))
    yard.pod("old", "job", on="n", labels=cooling, status=scheduled(old) | {"startTime": fresh})
    yard.pod("starting", "job", on="n", labels=cooling, status=scheduled(fresh) | {"phase": "Pending"})
    yard.pod("unknown", "job", on="n", labels=cooling, status=scheduled(fresh, "False"))
    yard.pod(
        "label-first",
        "job",
        on="n",
        labels={"volcano.sh/cooldown-time": "1s"},
        annotations=cooling,
        status=scheduled(fresh),
    )
    yard.pod("plain", "job", on="n", status=scheduled(fresh))
    plugin = CooldownProtection()
    round = yard.open(plugin, now=NOW)
    candidates = [task(round, name) for name in ("fresh", "told", "old", "starting", "unknown", "label-first", "plain")]
    for ask in (plugin.preemptable, plugin.reclaimable):
        victims = [victim.name for victim in ask(task(round, "x"), candidates)]
        assert victims == ["old", "starting", "unknown", "label-first", "plain"]
