"""The rules of Koordinator's descheduler as tables: thresholds, order, limits, who may be moved, arbitration."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.core.model.pod import Pod
from fairlead.core.model.selectors import selector_from_document
from fairlead.core.model.times import timestamp
from fairlead.koordinator.descheduling.anomaly import Detector, Detectors
from fairlead.koordinator.descheduling.arbitration import arbitration_order
from fairlead.koordinator.descheduling.evictable import Evictor, MigrationIndex, Movable, new_job
from fairlead.koordinator.descheduling.facts import ClusterFacts
from fairlead.koordinator.descheduling.limits import ObjectLimiters, TokenBucket, most_of
from fairlead.koordinator.descheduling.low_node_load import LowNodeLoad
from fairlead.koordinator.descheduling.node_load import (
    LoadClass,
    classify,
    filled,
    measure,
    set_limits,
    weighted_use,
)
from fairlead.koordinator.descheduling.pod_order import cost, covering, in_order
from fairlead.koordinator.descheduling.reserving import owners_of, reservation_for
from fairlead.koordinator.descheduling.settings import (
    AnomalyCondition,
    DeschedulerSettings,
    LowNodeLoadSettings,
    MigrationSettings,
    NamespaceChoice,
    NodePool,
)
from fairlead.koordinator.kinds import KOORD_MIGRATION_JOB, KOORD_NODE_METRIC
from tests.support.controllers import Documents

GI, NOW = 1 << 30, 1_767_225_600.0
SHIPPED = NodePool(low={"cpu": 45, "memory": 55}, high={"cpu": 75, "memory": 80}, anomaly=None)


class World:
    """Documents and what a descheduler makes of them."""

    def __init__(self) -> None:
        self.documents = Documents()
        self.facts = ClusterFacts(self.documents)
        self.migrations = MigrationIndex()

    def node(self, name: str, cpu: str = "10", memory: str = "10Gi", **spec: Any) -> None:
        status = {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}}
        self._put(kinds.NODE, {"metadata": {"name": name, "labels": {"name": name}}, "spec": spec, "status": status})

    def metric(self, node: str, pods: dict[str, tuple[str, str]], system: tuple[str, str] = ("0", "0")) -> None:
        def use(amounts: tuple[str, str]) -> Doc:
            return {"resources": {"cpu": amounts[0], "memory": amounts[1]}}

        said = [{"namespace": "default", "name": name, "podUsage": use(one)} for name, one in pods.items()]
        status = {
            "updateTime": timestamp(NOW), "podsMetric": said,
            "nodeMetric": {"nodeUsage": use(("0", "0")), "systemUsage": use(system)},
        }  # fmt: skip
        self._put(KOORD_NODE_METRIC, {"metadata": {"name": node}, "spec": {}, "status": status})

    def pod(self, name: str, node: str = "a", owner: str = "web", **more: Any) -> Pod:
        metadata = {
            "name": name, "namespace": "default", "labels": more.pop("labels", {}),
            "annotations": more.pop("annotations", {}), "creationTimestamp": timestamp(NOW + more.pop("age", 0)),
        }  # fmt: skip
        if owner:
            kind = more.pop("owner_kind", "ReplicaSet")
            metadata["ownerReferences"] = [
                {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
            ]
        status = {"phase": more.pop("phase", "Running")}
        status |= {"conditions": [{"type": "Ready", "status": more.pop("ready", "True")}]}
        metadata |= more.pop("metadata", {})
        requests = more.pop("requests", {"cpu": "1", "memory": "1Gi"})
        containers = [{"name": "main", "image": "x", "resources": {"requests": requests}}]
        spec = {"containers": containers, "schedulerName": "koord-scheduler", "nodeName": node, **more}
        self._put(kinds.POD, {"metadata": metadata, "spec": spec, "status": status})
        return self.facts.pods[f"default/{name}"]

    def workload(self, name: str = "web", replicas: int = 5) -> None:
        self._put(
            kinds.REPLICA_SET, {"metadata": {"name": name, "namespace": "default"}, "spec": {"replicas": replicas}}
        )

    def job(self, pod: Pod, phase: str = "Running", *, passed: bool = False, age: float = 0.0) -> Doc:
        made = new_job(pod, "test", "a reason", MigrationSettings(), NOW)
        made["metadata"] |= {"name": f"job-{pod.name}", "creationTimestamp": timestamp(NOW + age)}
        if passed:
            made["metadata"]["annotations"]["descheduler.koordinator.sh/passed-arbitration"] = "true"
        made["status"] = {"phase": phase}
        self.migrations.observe(made, gone=False)
        return made

    def movable(self, **settings: Any) -> Movable:
        return Movable(MigrationSettings(**settings), self.facts, self.migrations, self.documents)

    def _put(self, kind: kinds.Kind, doc: Doc) -> None:
        self.facts.observe(self.documents.put(kind, doc))


# ---- limits ----


@pytest.mark.parametrize(
    ("replicas", "given", "most"),
    [
        (0, None, 0), (1, None, 1), (3, None, 1), (4, None, 2), (10, None, 2), (11, None, 1), (25, None, 2),
        (100, None, 10), (10, 3, 3), (2, 3, 2), (10, "25%", 2), (10, "5%", 1), (10, 0, 1), (0, 5, 0),
    ],
)  # fmt: skip
def test_how_many_of_a_workload_move_at_once(replicas: int, given: int | str | None, most: int) -> None:
    assert most_of(replicas, given) == most


def test_a_bucket_begins_full_and_fills_at_its_rate() -> None:
    bucket = TokenBucket(rate=2 / 300, burst=1)
    assert bucket.take(NOW)
    assert not bucket.take(NOW + 149)
    assert bucket.take(NOW + 150)
    assert bucket.available(NOW + 1000) == 1


def test_a_workload_that_lost_a_pod_waits_for_the_next() -> None:
    world = World()
    world.workload(replicas=4)  # two in five minutes
    first, second = world.pod("a"), world.pod("b")
    other = world.pod("c", owner="other")
    limiters = ObjectLimiters(MigrationSettings(), world.facts)
    assert not limiters.exceeded(first, NOW)
    limiters.evicted(first, NOW)
    assert limiters.exceeded(second, NOW + 149)
    assert not limiters.exceeded(other, NOW + 1)
    assert not limiters.exceeded(second, NOW + 150)


# ---- anomalies ----


def test_a_node_is_overloaded_after_more_passes_than_said_and_until_time_or_relief() -> None:
    detector = Detector(AnomalyCondition(timeout=60, abnormal=2, normal=1))
    assert [detector.mark(NOW + at, normal=False) for at in (0, 10, 20)] == [False, False, True]
    assert detector.mark(NOW + 30, normal=True)
    assert not detector.mark(NOW + 40, normal=True), "more than one pass without"
    assert [detector.mark(NOW + at, normal=False) for at in (50, 60, 70)] == [False, False, True]
    assert not detector.mark(NOW + 131, normal=False), "after the time-out it has to be found anew"
    detector.mark(NOW + 132, normal=True)
    assert [detector.mark(NOW + at, normal=False) for at in (140, 141)] == [False, False]


@pytest.mark.parametrize("condition", [None, AnomalyCondition(abnormal=1)])
def test_without_a_condition_a_node_counts_at_once(condition: AnomalyCondition | None) -> None:
    assert Detectors(300.0).overloaded(["a"], condition, NOW) == {"a"}


def test_a_detector_that_nobody_asked_is_forgotten() -> None:
    detectors, condition = Detectors(300.0), AnomalyCondition(abnormal=2)
    assert [detectors.overloaded(["a"], condition, NOW + at) for at in (0, 10)] == [set(), set()]
    assert detectors.overloaded(["a"], condition, NOW + 310) == set(), "its count began again"


# ---- thresholds and classes ----


@pytest.mark.parametrize(
    ("used", "prod", "pool", "expected"),
    [
        (("4500m", "1Gi"), "0", SHIPPED, LoadClass.BOTH_LOW),  # at the low threshold is low
        (("4501m", "1Gi"), "0", SHIPPED, LoadClass.PROD_LOW),
        (("7500m", "1Gi"), "0", SHIPPED, LoadClass.PROD_LOW),  # at the high threshold is not high
        (("7501m", "1Gi"), "0", SHIPPED, LoadClass.HIGH),
        (("1", "8.1Gi"), "0", SHIPPED, LoadClass.HIGH),
        (("4", "1Gi"), "3", NodePool(low={"cpu": 45}, high={"cpu": 75}, prod_low={"cpu": 10}, prod_high={"cpu": 20}),
         LoadClass.PROD_HIGH),
        (("4", "1Gi"), "1500m", NodePool(low={"cpu": 45}, high={"cpu": 75}, prod_low={"cpu": 10},
                                         prod_high={"cpu": 20}), LoadClass.LOW),
        (("6", "1Gi"), "1500m", NodePool(low={"cpu": 45}, high={"cpu": 75}, prod_low={"cpu": 10},
                                         prod_high={"cpu": 20}), LoadClass.MIDDLE),
        (("6", "1Gi"), "3", NodePool(low={"cpu": 45}, high={"cpu": 75}, prod_low={"cpu": 10}, prod_high={"cpu": 20}),
         LoadClass.PROD_HIGH),
        (("6", "1Gi"), "1", NodePool(low={"cpu": 45}, high={"cpu": 75}, prod_low={"cpu": 10}, prod_high={"cpu": 20}),
         LoadClass.PROD_LOW),
        (("9900m", "1Gi"), "0", NodePool(high={"cpu": 20}), LoadClass.BOTH_LOW),  # no low threshold: no threshold
    ],
)  # fmt: skip
def test_what_a_nodes_use_makes_of_it(used: tuple[str, str], prod: str, pool: NodePool, expected: LoadClass) -> None:
    world = World()
    world.node("a")
    world.pod("p", priority=9500)
    world.pod("batch", labels={"koordinator.sh/priority-class": "koord-batch"})
    milli = {"cpu": used[0], "memory": used[1]}
    world.metric("a", {"p": (prod, "0")})
    use = measure(world.facts, world.facts.nodes.values(), filled(pool).low, now=NOW, expiration=180)["a"]
    from fairlead.core.model.documents import read_units

    use.used |= read_units(milli, "use")
    set_limits({"a": use}, filled(pool), by_deviation=False)
    assert classify(use) is expected


def test_a_cordoned_node_is_never_low_and_a_node_without_a_fresh_metric_is_left_out() -> None:
    world = World()
    for name in ("cordoned", "silent", "late"):
        world.node(name, **({"unschedulable": True} if name == "cordoned" else {}))
    world.metric("cordoned", {})
    world.metric("late", {})
    uses = measure(world.facts, world.facts.nodes.values(), ["cpu"], now=NOW + 179, expiration=180)
    assert sorted(uses) == ["cordoned", "late"]
    assert not measure(world.facts, world.facts.nodes.values(), ["cpu"], now=NOW + 180, expiration=180)
    set_limits(uses, filled(SHIPPED), by_deviation=False)
    assert [classify(uses[name]) for name in sorted(uses)] == [LoadClass.MIDDLE, LoadClass.BOTH_LOW]


def test_deviations_count_from_the_mean_and_nothing_is_a_threshold_of_all() -> None:
    world = World()
    for name, used in (("a", "1"), ("b", "3"), ("c", "8")):
        world.node(name)
        world.metric(name, {}, system=(used, "0"))
    pool = NodePool(low={"cpu": 10}, high={"cpu": 10}, by_deviation=True)
    uses = measure(world.facts, world.facts.nodes.values(), filled(pool).low, now=NOW, expiration=180)
    set_limits(uses, filled(pool), by_deviation=True)
    assert (uses["a"].limits.low["cpu"], uses["a"].limits.high["cpu"]) == (3000, 5000)
    assert uses["a"].limits.low["memory"] == 10 * GI
    assert [classify(uses[name]) for name in "abc"] == [LoadClass.BOTH_LOW, LoadClass.BOTH_LOW, LoadClass.HIGH]


def test_amplified_nodes_count_by_what_they_really_have() -> None:
    world = World()
    raw = {"node.koordinator.sh/raw-allocatable": '{"cpu": "5", "memory": "10Gi"}'}
    status = {"allocatable": {"cpu": "10", "memory": "10Gi"}}
    world._put(kinds.NODE, {"metadata": {"name": "a", "annotations": raw}, "spec": {}, "status": status})
    world.metric("a", {}, system=("4", "0"))
    use = measure(world.facts, world.facts.nodes.values(), ["cpu"], now=NOW, expiration=180)["a"]
    assert use.percent("cpu", prod=False) == 80
    assert weighted_use(use, {"cpu": 1}, prod=False) == 800


# ---- the order of pods ----


def test_pods_go_by_band_priority_quality_class_costs_cover_and_age() -> None:
    world = World()
    wanted = [
        world.pod("free", labels={"koordinator.sh/priority-class": "koord-free"}, priority=9999),
        world.pod("batch", priority=5500),
        world.pod("mid", priority=7000),
        world.pod("prod-be", priority=9000, requests={}),
        world.pod("prod-low", priority=9001, annotations={"controller.kubernetes.io/pod-deletion-cost": "-5"}),
        world.pod("prod-cheap", priority=9001, annotations={"scheduling.koordinator.sh/eviction-cost": "-1"}),
        world.pod("prod-young", priority=9001, age=20),
        world.pod("prod-old", priority=9001, age=10),
        world.pod("prod-lsr", priority=9001, labels={"koordinator.sh/qosClass": "LSR"}),
        world.pod("prod-high", priority=9002),
    ]
    assert [pod.name for pod in in_order(reversed(wanted))] == [pod.name for pod in wanted]


def test_pods_that_just_cover_the_excess_go_first_and_those_without_a_metric_last() -> None:
    world = World()
    use = {"half": 500, "just": 1000, "double": 2000, "ten": 10_000}
    pods = [world.pod(name) for name in ("none", *use)]

    def cover(pod: Pod) -> float | None:
        amount = use.get(pod.name)
        return None if amount is None else covering({"cpu": amount}, {"cpu": 1000}, {"cpu": 1})

    assert [pod.name for pod in in_order(pods, cover)] == ["just", "double", "ten", "half", "none"]


@pytest.mark.parametrize(
    ("text", "number"), [("5", 5), ("-5", -5), ("0", 0), ("+5", 0), ("05", 0), ("x", 0), ("", 0), ("2147483648", 0)]
)
def test_costs_are_read_as_numbers_of_32_bits(text: str, number: int) -> None:
    assert cost({"c": text}, "c") == number


# ---- who may be moved ----


@pytest.mark.parametrize(
    ("pod", "settings", "never"),
    [
        ({}, {}, False),
        ({"owner": ""}, {}, True),
        ({"owner": ""}, {"all_bare_pods": True}, False),
        ({"owner": "", "phase": "Failed"}, {"failed_bare_pods": True}, False),
        ({"owner": ""}, {"skipped": frozenset({"BarePods"})}, False),
        ({"owner_kind": "DaemonSet"}, {}, True),
        ({"metadata": {"deletionTimestamp": timestamp(NOW)}}, {}, True),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, {}, True),
        ({"annotations": {"kubernetes.io/config.source": "file"}}, {}, True),
        ({"annotations": {"scheduling.koordinator.sh/eviction-cost": "2147483647"}}, {}, True),
        ({"annotations": {"scheduling.koordinator.sh/eviction-cost": "2147483646"}}, {}, False),
        ({"priority": 2_000_000_000}, {}, True),
        ({"priority": 2_000_000_000}, {"critical_pods": True}, False),
        ({"priority": 100}, {"priority_below": 100}, True),
        ({"priority": 99}, {"priority_below": 100}, False),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, {}, True),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, {"local_storage_pods": True}, False),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, {}, False),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, {"ignores_claims": True}, True),
        ({}, {"namespaces": NamespaceChoice(exclude=frozenset({"default"}))}, True),
        ({}, {"namespaces": NamespaceChoice(include=frozenset({"other"}))}, True),
        ({}, {"selector": selector_from_document({"matchLabels": {"may": "go"}})}, True),
        ({"labels": {"may": "go"}}, {"selector": selector_from_document({"matchLabels": {"may": "go"}})}, False),
        ({"owner": "", "annotations": {"descheduler.alpha.kubernetes.io/evict": "true"}}, {}, False),
        ({"owner": "single"}, {}, True),
        ({"owner": "single"}, {"skipped": frozenset({"ExpectedReplicas"})}, False),
        ({"owner": "unknown", "owner_kind": "Robot"}, {}, True),
        ({}, {"most_per_workload": 5}, True),
        ({}, {"most_unavailable": "100%"}, True),
        ({}, {"most_unavailable": "100%", "ignores_replicas": True}, False),
    ],
)  # fmt: skip
def test_who_is_never_moved(pod: dict[str, Any], settings: dict[str, Any], never: bool) -> None:
    world = World()
    world.workload()
    world.workload("single", 1)
    assert world.movable(**settings).never(world.pod("p", **pod)) is never


@pytest.mark.parametrize(
    ("jobs", "settings", "waits"),
    [
        ([], {}, False),
        ([("x", "a", "other")], {}, False),
        ([("x", "a", "other"), ("y", "a", "third")], {}, True),  # two leave the node
        ([("x", "b", "other"), ("y", "b", "third")], {}, False),
        ([("x", "a", "other"), ("y", "a", "third")], {"skipped": frozenset({"MaxMigratingPerNode"})}, False),
        ([("x", "b", "other")], {"most_globally": 1}, True),
        ([("x", "b", "other")], {"most_per_namespace": 1}, True),
        ([("x", "b", "web")], {}, False),
        ([("x", "b", "web"), ("y", "c", "web")], {}, True),  # of five two may be under way
        ([("x", "b", "web")], {"most_per_workload": 1}, True),
        ([("x", "b", "web")], {"most_unavailable": 1}, True),
    ],
)
def test_who_has_to_wait(jobs: list[tuple[str, str, str]], settings: dict[str, Any], waits: bool) -> None:
    world = World()
    for name in ("web", "other", "third"):
        world.workload(name)
    for name, node, owner in jobs:
        world.job(world.pod(name, node, owner))
    assert world.movable(**settings).must_wait(world.pod("p"), arbitrating=True) is waits


def test_pods_that_do_not_serve_count_as_on_the_way() -> None:
    world = World()
    world.workload()
    world.pod("down-1", ready="False")
    target = world.pod("p")
    assert not world.movable().must_wait(target, arbitrating=True)
    world.pod("down-2", phase="Failed")
    assert world.movable().must_wait(target, arbitrating=True)


def test_a_waiting_job_counts_for_a_new_one_and_not_in_arbitration() -> None:
    world = World()
    world.workload("other")
    world.workload()
    for name in ("x", "y"):
        world.job(world.pod(name, "a", "other"), "Pending")
    target = world.pod("p")
    assert world.movable().must_wait(target, arbitrating=False)
    assert not world.movable().must_wait(target, arbitrating=True)
    for name in ("x", "y"):
        world.job(world.facts.pods[f"default/{name}"], "Pending", passed=True)
    assert world.movable().must_wait(target, arbitrating=True)


def test_arbitration_takes_young_jobs_cheap_pods_and_batch_jobs_together() -> None:
    world = World()
    pods = {
        "old": world.pod("old", priority=9500), "cheap": world.pod("cheap", priority=5500),
        "job-1": world.pod("job-1", priority=6000, owner="train", owner_kind="Job"),
        "job-2": world.pod("job-2", priority=9900, owner="train", owner_kind="Job"),
        "dear": world.pod("dear", priority=9800),
    }  # fmt: skip
    jobs = [world.job(pod, "Pending", age=at) for at, pod in enumerate(pods.values())]
    order = [job["spec"]["podRef"]["name"] for job in arbitration_order(jobs, world.facts, world.migrations)]
    assert order == ["cheap", "job-1", "job-2", "old", "dear"]
    moving = world.pod("job-3", owner="train", owner_kind="Job")
    world.job(moving)
    order = [job["spec"]["podRef"]["name"] for job in arbitration_order(jobs, world.facts, world.migrations)]
    assert order == ["job-1", "job-2", "cheap", "old", "dear"]


# ---- a pass ----


def evicted(world: World, pool: NodePool = SHIPPED, **settings: Any) -> dict[str, str]:
    """The pods that a pass evicts, in order, with the reasons."""
    chosen = {name: settings.pop(name) for name in ("most_per_node", "most_in_total") if name in settings}
    limits = DeschedulerSettings(**chosen)
    movable = world.movable(
        most_per_node=0, skipped=frozenset({"MaxMigratingPerWorkload", "MaxUnavailablePerWorkload"})
    )
    limiters = ObjectLimiters(MigrationSettings(), world.facts)
    evictor = Evictor(limits, movable, world.migrations, limiters, world.documents, NOW)
    plugin = LowNodeLoad(LowNodeLoadSettings(pools=(pool,), **settings), world.facts)
    nodes = sorted(world.facts.nodes.values(), key=lambda node: node.name)
    plugin.balance(nodes, evictor, NOW)
    return {
        write.body["spec"]["podRef"]["name"]: write.body["metadata"]["annotations"]["koordinator.sh/evict-reason"]
        for write in evictor.writes
        if write.kind is KOORD_MIGRATION_JOB
    }


def crowded(*, idle: int = 1) -> World:
    """A node of ten cores with nine pods that use one core each, and idle ones."""
    world = World()
    world.node("a")
    world.workload(replicas=9)
    for number in range(9):
        world.pod(f"p{number}", priority=9000 + number)
    world.metric("a", {f"p{number}": ("1", "100Mi") for number in range(9)})
    for number in range(idle):
        world.node(f"idle-{number}")
        world.metric(f"idle-{number}", {})
    return world


def test_a_pass_evicts_the_cheapest_until_the_node_is_below_its_threshold() -> None:
    found = evicted(crowded())
    assert found == {
        "p0": "node is overutilized, node cpu usage(90.00%)>threshold(75.00%)",
        "p1": "node is overutilized, node cpu usage(80.00%)>threshold(75.00%)",
    }


@pytest.mark.parametrize(
    ("idle", "settings", "count"),
    [
        (1, {}, 2),
        (0, {}, 0),  # nobody is low
        (1, {"number_of_nodes": 1}, 0),
        (2, {"number_of_nodes": 1}, 2),
        (1, {"paused": True}, 0),
        (1, {"dry_run": True}, 0),
        (1, {"namespaces": NamespaceChoice(exclude=frozenset({"default"}))}, 0),
        (1, {"selectors": (selector_from_document({"matchLabels": {"x": "y"}}),)}, 0),
        (1, {"most_per_node": 1}, 1),
        (1, {"most_in_total": 0}, 0),
    ],
)
def test_what_keeps_a_pass_from_evicting(idle: int, settings: dict[str, Any], count: int) -> None:
    assert len(evicted(crowded(idle=idle), **settings)) == count


def test_a_target_takes_no_more_than_its_own_threshold_allows() -> None:
    world = crowded(idle=0)
    world.node("low", cpu="10")
    world.metric("low", {}, system=("4400m", "0"))
    pool = NodePool(low={"cpu": 45}, high={"cpu": 60}, anomaly=None)  # 1.6 cores are left below 60 percent
    assert list(evicted(world, pool)) == ["p0"]
    assert list(evicted(crowded(), NodePool(low={"cpu": 45}, high={"cpu": 60}, anomaly=None))) == ["p0", "p1", "p2"]


def test_with_node_fit_a_pod_that_no_target_takes_stays() -> None:
    world = crowded(idle=0)
    world.node("low", taints=[{"key": "k", "effect": "NoSchedule"}])
    world.metric("low", {})
    assert not evicted(world)
    assert len(evicted(world, node_fit=False)) == 2


def test_node_fit_ignores_affinity_between_pods_which_the_scheduler_goes_by() -> None:
    world = crowded()
    apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "name"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    for number in range(9):
        world.pod(f"p{number}", labels={"app": "web"}, affinity=rule, priority=9000 + number)
    world.pod("web-there", "idle-0", labels={"app": "web"}, affinity=rule, requests={"cpu": "10m"})
    assert list(evicted(world)) == ["p0", "p1"]


def test_prod_pods_leave_a_node_whose_prod_use_is_high() -> None:
    world = World()
    world.workload(replicas=9)
    for name in ("a", "b"):
        world.node(name)
    for number in range(3):
        world.pod(f"p{number}", priority=9000 + number)
    world.pod("batch", priority=5000)
    world.metric("a", {**{f"p{number}": ("1", "0") for number in range(3)}, "batch": ("3", "0")})
    world.metric("b", {})
    pool = NodePool(low={"cpu": 45}, high={"cpu": 75}, prod_low={"cpu": 10}, prod_high={"cpu": 20}, anomaly=None)
    assert evicted(world, pool) == {"p0": "node is overutilized, prod cpu usage(30.00%)>threshold(20.00%)"}


# ---- the reservation of a job ----


def test_a_job_reserves_a_place_elsewhere_for_the_pods_of_the_same_controller() -> None:
    world = World()
    world.pod(
        "p",
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}]
                }
            }
        },
    )
    pod = world.documents.get(kinds.POD, "default", "p")
    assert pod is not None
    job = {"metadata": {"name": "j", "uid": "u-1"}, "spec": {"ttl": "5m"}}
    made = reservation_for(job, pod, NOW)
    assert made["metadata"]["name"] == "u-1"
    assert made["metadata"]["labels"]["scheduling.koordinator.sh/reservation-order"] == str(int(NOW * 1000))
    spec = made["spec"]
    assert (spec["allocateOnce"], spec["ttl"]) == (True, "5m")
    assert spec["owners"][0]["controller"]["name"] == "web"
    assert "nodeName" not in spec["template"]["spec"]
    required = spec["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["key"] == "x"
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]
    assert pod["spec"]["nodeName"] == "a", "the pod itself is left as it is"


def test_a_pod_without_a_node_is_its_own_owner_and_a_bare_one_has_none() -> None:
    waiting = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}
    metadata = {"name": "p", "namespace": "ns", "uid": "u"}
    named = {"uid": "u", "kind": "Pod", "name": "p", "namespace": "ns"}
    assert owners_of({"metadata": metadata, "spec": {}, "status": waiting}) == [{"object": named}]
    assert owners_of({"metadata": metadata, "spec": {"nodeName": "a"}, "status": {"phase": "Running"}}) == []
