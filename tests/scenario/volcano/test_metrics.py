"""Volcano's own metrics, from a cluster that is scheduled with its profile."""

from __future__ import annotations

from itertools import count

import pytest

from fairlead.assembly.presets import first_profile
from fairlead.core.engine.explain.figures import figures_of, take
from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.framework.meter import Meter
from fairlead.core.model import kinds
from fairlead.runtime.telemetry import Telemetry
from fairlead.testing.builders import nodes, priority_class, queue
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.kinds import VC_POD_GROUP
from fairlead.volcano.metrics import VolcanoMetrics, exponential_range
from tests.support.volcano import VolcanoHarness, conf


class Watched(VolcanoHarness):
    """With a clock that goes a millisecond on whenever somebody looks at it."""

    def __init__(self, text: str = PRESETS["default"], **more: object) -> None:
        super().__init__(text, nodes(2), **more)  # type: ignore[arg-type]
        ticks = count()
        self.scheduler.measure(Meter(lambda: next(ticks) / 1000))
        self.telemetry, self.reader = Telemetry(sources=[VolcanoMetrics()]), self.scheduler.decisions.reader()

    def text(self) -> str:
        self.telemetry.hand_over(take(self.scheduler, self.reader))
        self.telemetry.after_step()
        return self.telemetry.exposition(figures_of(self.scheduler)).decode()

    def scraped(self) -> dict[str, float]:
        """Samples of Volcano's by their text, without the prefix."""
        lines = (line.rpartition(" ") for line in self.text().splitlines() if line.startswith("volcano_"))
        return {name.removeprefix("volcano_"): float(value) for name, _, value in lines}


@pytest.fixture
def world() -> Watched:
    made = Watched()
    made.gang("train", 3, asks={"cpu": "2"})
    made.run(5)
    return made


def test_rounds_actions_and_plugins_are_timed(world: Watched) -> None:
    found = world.scraped()
    rounds = found["e2e_scheduling_latency_milliseconds_count"]
    assert rounds >= 2
    assert found["open_session_duration_milliseconds_count"] == rounds
    assert found["e2e_scheduling_latency_milliseconds_sum"] > found["open_session_duration_milliseconds_sum"] > 0
    for action in ("enqueue", "allocate", "backfill"):
        assert found[f'action_scheduling_latency_milliseconds_count{{action="{action}"}}'] == rounds
    for moment in ("OnSessionOpen", "OnSessionClose"):
        assert found[f'plugin_scheduling_latency_milliseconds_count{{OnSession="{moment}",plugin="gang"}}'] == rounds


def test_tasks_and_their_stages_are_timed(world: Watched) -> None:
    found = world.scraped()
    for stage in ("Watched", "Assumed", "PreBound", "Bound"):
        assert found[f'task_scheduling_latency_milliseconds_count{{stage="{stage}"}}'] == 3
    for stage in ("PreBind", "Bind"):
        assert found[f'scheduling_stage_duration_milliseconds_count{{stage="{stage}"}}'] == 3
    assert found['scheduling_stage_duration_milliseconds_count{stage="Predicate"}'] >= 3
    assert found['scheduling_stage_duration_milliseconds_count{stage="Scoring"}'] >= 1


def test_counts_of_jobs_follow_jobs_that_come_and_go(world: Watched) -> None:
    labels = '{job_name="train",job_namespace="default",queue="default"}'
    created = world.scheduler.cluster.object_index.of(VC_POD_GROUP)["default/train"].created
    found = world.scraped()
    assert found["e2e_job_scheduling_latency_milliseconds_count"] == 3, "one per task that got a place"
    assert found[f"e2e_job_scheduling_start_time{labels}"] == created
    assert found[f"e2e_job_scheduling_last_time{labels}"] >= created
    assert found[f"e2e_job_scheduling_duration{labels}"] < 5000
    assert found['job_share{job_id="train",job_ns="default"}'] == 0.75, "six of eight cores"
    assert found['unschedule_task_count{job_id="train"}'] == 0
    for at in range(3):
        world.delete(kinds.POD, f"train-w-{at}")
    world.delete(VC_POD_GROUP, "train")
    world.run(60)
    assert not [name for name in world.scraped() if "train" in name]


def test_gangs_that_lack_tasks_are_counted() -> None:
    world = Watched(conf("enqueue, allocate", "priority; gang", "predicates; nodeorder"))
    world.gang("huge", 5, asks={"cpu": "4"})
    world.run(5)
    found = world.scraped()
    assert found["unschedule_job_count"] == 1
    assert found['unschedule_task_count{job_id="huge"}'] == 3, "two of five would fit"
    assert found['job_retry_counts{job_id="huge"}'] >= 1


def test_proportion_reports_its_queues(world: Watched) -> None:
    world.apply(queue("idle").weighing(3))
    world.run(3)
    world.gang("more", 1, asks={"cpu": "1"})
    world.run(3)
    found = world.scraped()
    assert found['queue_allocated_milli_cpu{queue_name="default"}'] == 7000
    assert found['queue_request_milli_cpu{queue_name="default"}'] == 7000
    assert found['queue_deserved_milli_cpu{queue_name="default"}'] == 7000
    assert found['queue_allocated_scalar_resources{queue_name="default",resource="pods"}'] == 4
    assert found['queue_inqueue_milli_cpu{queue_name="default"}'] == 0
    assert found['queue_share{queue_name="default"}'] == 1
    assert found['queue_weight{queue_name="default"}'] == 1
    assert found['queue_overused{queue_name="default"}'] == 1
    assert found['queue_allocated_milli_cpu{queue_name="idle"}'] == 0
    assert not [name for name in found if name.startswith(("queue_capacity", "queue_real_capacity"))]


def test_capacity_reports_its_queues() -> None:
    world = Watched(
        conf("enqueue, allocate", "priority; gang", "predicates; capacity; nodeorder"),
        queues=[queue("a").capped_at(cpu="6", memory="8Gi").deserving(cpu="2", memory="4Gi")],
    )
    world.gang("one", 2, asks={"cpu": "2"}, queue="a")
    world.run(5)
    found = world.scraped()
    assert found['queue_allocated_milli_cpu{queue_name="a"}'] == 4000
    assert found['queue_deserved_milli_cpu{queue_name="a"}'] == 2000
    assert found['queue_deserved_memory_bytes{queue_name="a"}'] == 4 * 2**30
    assert found['queue_capacity_milli_cpu{queue_name="a"}'] == 6000
    assert found['queue_real_capacity_milli_cpu{queue_name="a"}'] == 6000
    assert found['queue_share{queue_name="a"}'] == 2
    assert found['queue_overused{queue_name="a"}'] == 1
    assert 'queue_weight{queue_name="a"}' not in found


def test_preemption_attempts_and_victims_are_counted() -> None:
    text = conf("allocate, preempt", "priority; gang enablePreemptable: false", "predicates; nodeorder")
    world = Watched(text)
    before = world.scraped()
    assert (before["total_preemption_attempts"], before["pod_preemption_victims"]) == (0, 0)
    world.apply(priority_class("low", 10), priority_class("high", 1000))
    world.gang("old", 4, asks={"cpu": "2"}, priority_class="low", pod_class="low")
    world.run(5)
    world.gang("new", 1, asks={"cpu": "2"}, priority_class="high", pod_class="high")
    world.run(3)
    found = world.scraped()
    assert found["total_preemption_attempts"] == 1
    assert found["pod_preemption_victims"] == 2, "so many could go from that node"
    assert found['eviction_transactions_total{action="preempt"}'] == 1


def test_names_and_types_are_volcanos(world: Watched) -> None:
    """Two counters are called what no counter should be."""
    text = world.text()
    assert "# TYPE volcano_total_preemption_attempts counter" in text
    assert "# TYPE volcano_e2e_scheduling_latency_milliseconds histogram" in text
    assert "# TYPE volcano_queue_share gauge" in text
    assert "volcano_total_preemption_attempts_total" not in text


def test_buckets_are_gos_to_the_last_digit() -> None:
    """As Go's client computes ExponentialBucketsRange."""
    session = exponential_range(1, 5000, 20)
    assert session[:5] == (1.0, 1.5656065579430964, 2.45112389427443, 3.8374956432070686, 6.008008345083047)
    assert len(session) == 20
    assert session[-1] == 4999.999999999997
    assert exponential_range(100, 120000, 30)[-1] == 119999.99999999991
    assert exponential_range(0.1, 100, 15)[-1] == 100.00000000000006
    assert exponential_range(1, 2000, 20)[-1] == 1999.9999999999977
    assert exponential_range(50, 60000, 30)[-1] == 59999.999999999956
    assert exponential_range(0.1, 500, 20)[-1] == 499.9999999999998


def test_a_scheduler_without_rounds_has_none_of_them() -> None:
    scheduler = Scheduler([first_profile()])
    assert b"volcano" not in Telemetry(sources=[VolcanoMetrics()]).exposition(figures_of(scheduler))


def test_they_can_be_forgotten(world: Watched) -> None:
    world.text()
    world.telemetry.reset()
    assert world.scraped()["e2e_scheduling_latency_milliseconds_count"] == 0
