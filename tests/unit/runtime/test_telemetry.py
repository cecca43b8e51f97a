"""Metrics under the original's names, from data that the scheduler leaves behind."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from fairlead.assembly.registry import BUILT_IN
from fairlead.assembly.schedulers import default_scheduler
from fairlead.core.engine.explain.figures import figures_of, take
from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.framework.meter import Meter
from fairlead.core.model.figures import Decision, EvictedPod, Figures, Observed, Sample
from fairlead.runtime import metrics
from fairlead.runtime.metrics import Histogram, Name, exponential
from fairlead.runtime.telemetry import Telemetry
from fairlead.testing.builders import node, pod, priority_class
from fairlead.testing.harness import Harness


def decided(result: str, **more: Any) -> Decision:
    return Decision(0.0, "default-scheduler", "default/p", "uid", result, **more)


def lines(telemetry: Telemetry, figures: Figures | None = None) -> dict[str, float]:
    """Samples by their text."""
    text = telemetry.exposition(figures or Figures()).decode()
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if not line.startswith("#")
    }


def telemetry_of(observed: Observed | None = None, **more: Any) -> Telemetry:
    telemetry = Telemetry(**more)
    telemetry.hand_over(observed or Observed())
    telemetry.after_step()
    return telemetry


def test_attempts_are_counted_and_timed_by_result_and_profile() -> None:
    observed = Observed(decisions=(decided("scheduled", took=0.003, attempts=1), decided("error", took=0.5)))
    found = lines(telemetry_of(observed))
    assert found['scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}'] == 1
    assert found['scheduler_schedule_attempts_total{profile="default-scheduler",result="error"}'] == 1
    prefix = (
        'scheduler_scheduling_attempt_duration_seconds_bucket{le="%s",profile="default-scheduler",result="scheduled"}'
    )
    assert (found[prefix % "0.002"], found[prefix % "0.004"], found[prefix % "+Inf"]) == (0, 1, 1)


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (40, "15+")])
def test_the_sli_duration_is_labelled_by_attempts_up_to_fifteen(attempts: int, label: str) -> None:
    found = lines(telemetry_of(Observed(decisions=(decided("scheduled", attempts=attempts, waited=3.0),))))
    assert found[f'scheduler_pod_scheduling_sli_duration_seconds_sum{{attempts="{label}"}}'] == 3.0
    assert found["scheduler_pod_scheduling_attempts_sum"] == attempts


def test_plugins_and_points_are_timed_in_measured_cycles() -> None:
    samples = (
        Sample(10, "default-scheduler", "Slow", "filter", "Success", 0.002),
        Sample(10, "default-scheduler", "Slow", "filter_row", "Success", 0.001),
        Sample(10, "default-scheduler", "Broken", "score", "Error", 0.001),
    )
    found = lines(telemetry_of(Observed(samples=samples, algorithm=(0.02,), victims=(3,))))
    plugin = (
        'scheduler_plugin_execution_duration_seconds_count{extension_point="Filter",plugin="Slow",status="Success"}'
    )
    labels = '{extension_point="%s",profile="default-scheduler",status="%s"}'
    point = "scheduler_framework_extension_point_duration_seconds_%s" + labels
    assert found[plugin] == 2
    assert found[point % ("count", "Filter", "Success")] == 1
    assert found[point % ("sum", "Filter", "Success")] == pytest.approx(0.003)
    assert found[point % ("count", "Score", "Error")] == 1
    assert found["scheduler_scheduling_algorithm_duration_seconds_count"] == 1
    assert found["scheduler_preemption_victims_sum"] == 3


def test_gauges_and_counters_come_from_the_schedulers_figures() -> None:
    figures = Figures(
        pending={"active": 1, "gated": 2},
        incoming={("active", "NodeAdd"): 3},
        blamed={("Fit", "default-scheduler"): 4},
        in_flight={"PodPopped": 5},
        nodes=7,
        pods=8,
        assumed=9,
        evaluations={("Fit", "filter", "default-scheduler"): 6},
        preemptions=10,
        rows_one_by_one={"mine": 11},
        costliest=("mine", 0.5),
    )
    found = lines(
        telemetry_of(requests=lambda: {("200", "127.0.0.1:1", "GET"): 12}, leading=lambda: ("kube-scheduler", True)),
        figures,
    )
    expected = {
        'scheduler_pending_pods{queue="gated"}': 2,
        'scheduler_queue_incoming_pods_total{event="NodeAdd",queue="active"}': 3,
        'scheduler_unschedulable_pods{plugin="Fit",profile="default-scheduler"}': 4,
        'scheduler_inflight_events{event="PodPopped"}': 5,
        'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="Fit",profile="default-scheduler"}': 6,
        'scheduler_cache_size{type="nodes"}': 7,
        'scheduler_cache_size{type="pods"}': 8,
        'scheduler_cache_size{type="assumed_pods"}': 9,
        "scheduler_preemption_attempts_total": 10,
        'fairlead_rows_one_by_one_total{plugin="mine"}': 11,
        'rest_client_requests_total{code="200",host="127.0.0.1:1",method="GET"}': 12,
        'leader_election_master_status{name="kube-scheduler"}': 1,
    }
    assert {name: found[name] for name in expected} == expected


def test_buckets_are_the_originals() -> None:
    assert metrics.ATTEMPT_SECONDS.buckets == exponential(0.001, 2, 15)
    assert (metrics.ATTEMPT_SECONDS.buckets[-1], metrics.POINT_SECONDS.buckets[-1]) == (16.384, 0.2048)
    assert (len(metrics.SLI_SECONDS.buckets), metrics.SLI_SECONDS.buckets[-1]) == (20, 5242.88)
    assert metrics.VICTIMS.buckets == (1, 2, 4, 8, 16, 32, 64)
    assert metrics.POD_ATTEMPTS.buckets == (1, 2, 4, 8, 16)
    assert metrics.PLUGIN_SECONDS.buckets[:2] == (0.00001, 0.000015000000000000002)


def test_help_begins_with_the_stability() -> None:
    names = [value for value in vars(metrics).values() if isinstance(value, Name)]
    assert len(names) > 15
    assert all(name.help.startswith(("[STABLE] ", "[BETA] ", "[ALPHA] ")) for name in names)


def test_a_value_on_a_bound_belongs_to_that_bucket() -> None:
    histogram = Histogram(Name("h", "[ALPHA] h", (), (1.0, 2.0)))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)
    samples = {s.labels.get("le", s.name): s.value for s in histogram.family().samples}
    assert samples == {"1.0": 2, "2.0": 3, "+Inf": 4, "h_count": 4, "h_sum": 12.0}


def test_a_reset_forgets_what_was_added_up() -> None:
    telemetry = telemetry_of(Observed(decisions=(decided("scheduled", attempts=1, took=0.1),)))
    telemetry.reset()
    assert not any(name.startswith("scheduler_schedule_attempts_total") for name in lines(telemetry))


def test_the_costliest_plugin_is_named_once_unless_it_is_built_in(caplog: pytest.LogCaptureFixture) -> None:
    def costly(plugin: str, share: float) -> Observed:
        return Observed(algorithm=(0.1,) * 1000, costliest=(plugin, share))

    with caplog.at_level(logging.WARNING, logger="fairlead.scheduler"):
        mine = telemetry_of(costly("mine", 0.8), built_in=frozenset(BUILT_IN))
        mine.hand_over(costly("mine", 0.8))
        mine.after_step()
        telemetry_of(costly("NodeResourcesFit", 0.8), built_in=frozenset(BUILT_IN))
        telemetry_of(costly("mine", 0.2))
    assert [record.getMessage() for record in caplog.records] == ["plugin mine takes 80 % of the time of all plugins"]


def test_decisions_are_logged_only_for_those_who_ask(caplog: pytest.LogCaptureFixture) -> None:
    observed = Observed(decisions=(decided("unschedulable", message="0/1 nodes are available: 1 x."),))
    with caplog.at_level(logging.INFO, logger="fairlead.scheduler"):
        telemetry_of(observed)
        assert caplog.records == []
        telemetry_of(observed, log_decisions=True)
    (record,) = caplog.records
    assert (record.getMessage(), vars(record)["err"]) == (
        "Unable to schedule pod; no fit; waiting",
        "0/1 nodes are available: 1 x.",
    )


def test_a_scheduler_at_work_fills_the_metrics() -> None:
    from fairlead.assembly.presets import first_profile

    scheduler = Scheduler([first_profile()])
    scheduler.measure(Meter(iter(range(1_000_000)).__next__, every=1))  # type: ignore[arg-type]
    cluster = Harness(nodes=[node("a"), node("b")], schedulers=[lambda view: scheduler])
    cluster.apply(pod("p").asks(cpu="1"), pod("huge").asks(cpu="99"))
    cluster.run(1)
    reader, another = scheduler.decisions.reader(), scheduler.decisions.reader()
    telemetry = telemetry_of(take(scheduler, reader))
    found = lines(telemetry, figures_of(scheduler))
    assert found['scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}'] == 1
    assert found['scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"}'] == 1
    assert found['scheduler_pending_pods{queue="unschedulable"}'] == 1
    assert found['scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"}'] == 1
    assert found["scheduler_preemption_attempts_total"] == 1
    assert found['scheduler_cache_size{type="pods"}'] == 1
    evaluation = (
        'scheduler_plugin_evaluation_total{extension_point="%s",plugin="NodeResourcesFit",profile="default-scheduler"}'
    )
    assert (found[evaluation % "Filter"], found[evaluation % "Score"]) == (2, 1)
    assert any(name.startswith("scheduler_plugin_execution_duration_seconds_count") for name in found)
    assert reader.read() == ()
    assert len(another.read()) == 2, "what one reader has read is still there for another"


def test_an_eviction_is_logged_with_whom_it_was_for(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = Telemetry()
    gone = EvictedPod("shop/low", "n0", "shop/high", "priority", 5, 61.26)
    with caplog.at_level(logging.INFO, logger="fairlead.scheduler"):
        telemetry.hand_over(Observed(evicted=(gone, gone)))
        telemetry.after_step()
    said = [vars(record) for record in caplog.records if record.getMessage() == "Evicted pod"]
    assert len(said) == 2
    wanted = {"pod": "shop/low", "node": "n0", "for": "shop/high", "rule": "priority", "lostSeconds": 61.3}
    assert wanted.items() <= said[0].items()


def test_every_eviction_of_a_scheduler_reaches_the_log_once() -> None:
    scheduler = default_scheduler()
    cluster = Harness(nodes=[node("n0").offers(cpu="1")], schedulers=[lambda _: scheduler])
    cluster.apply(priority_class("high", 100), pod("low").asks(cpu="1"))
    cluster.run(2)
    cluster.apply(pod("urgent").asks(cpu="1").of_priority("high"))
    cluster.run(5)
    found = take(scheduler, scheduler.decisions.reader()).evicted
    assert [(one.pod, one.node, one.beneficiary) for one in found] == [("default/low", "n0", "default/urgent")]
    assert take(scheduler, scheduler.decisions.reader()).evicted == ()
    assert [*figures_of(scheduler).evicted.values()] == [1]
    assert "fairlead_evictions_total{" in Telemetry().exposition(figures_of(scheduler)).decode()
