"""One policy at a time in a whole cluster: from objects to bindings and evictions, plugin by plugin."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.kube.extenders.wire import ExtenderConnection
from fairlead.testing.builders import node, nodes, podgroup, queue
from fairlead.volcano.kinds import VC_HYPER_NODE
from fairlead.volcano.plugins.extender import VolcanoExtender
from tests.support.extender_server import ExtenderServer
from tests.support.volcano import VolcanoHarness, conf, round_drivers

PLACING = "allocate, backfill"
GUEST = {"volcano.sh/preemptable": "true"}


def places(world: VolcanoHarness, group: str) -> Counter[str]:
    """How many pods of a group are on which node."""
    found = (bound for name, bound in world.bindings().items() if name.startswith(f"{group}-"))
    return Counter(found)


# ---- who goes first, and who is let in ----


def test_a_job_that_has_waited_as_long_as_was_promised_goes_before_more_important_ones() -> None:
    world = VolcanoHarness(
        conf("enqueue, allocate, backfill", "sla; priority; gang", "overcommit; predicates"), nodes(1)
    )
    world.gang("first", 1, asks={"cpu": "4"}, needs={"cpu": "4"}, run_time="4m")
    world.run(5)
    late = podgroup("patient", 1).in_queue("default").annotated({"sla-waiting-time": "2m"})
    world.apply(late.having(minResources={"cpu": "4"}), world.member("patient", 0, {"cpu": "4"}))
    world.run(90)
    assert world.phase("patient") == "Pending", "the cluster is full and was promised to nobody"
    world.run(60)
    assert world.phase("patient") == "Inqueue", "let in whatever overcommit says"
    world.gang("young", 1, asks={"cpu": "4"}, needs={"cpu": "4"})
    world.run(100)
    assert world.running() == {"patient": 1}


def test_groups_are_let_in_as_far_as_the_cluster_may_be_overbooked() -> None:
    text = conf("enqueue, allocate, backfill", "gang", "overcommit arguments: {overcommit-factor: 1.5}; predicates")
    world = VolcanoHarness(text, nodes(1))
    for at in range(4):
        world.gang(f"g{at}", 1, asks={"cpu": "2"}, needs={"cpu": "2"})
    world.run(10)
    phases = Counter(world.phase(f"g{at}") for at in range(4))
    assert phases == {"Running": 2, "Inqueue": 1, "Pending": 1}


def test_a_group_waits_until_its_namespace_has_quota() -> None:
    world = VolcanoHarness(conf("enqueue, allocate, backfill", "gang; resourcequota", "predicates"), nodes(2))
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
    world.apply({**quota, "spec": {"hard": {"cpu": "4"}}})
    world.run(5)
    world.gang("small", 1, asks={"cpu": "1"}, needs={"cpu": "2"})
    world.gang("large", 1, asks={"cpu": "1"}, needs={"cpu": "3"})
    world.run(10)
    assert (world.phase("small"), world.phase("large")) == ("Running", "Pending")
    said = [text for _, text in world.events("large") if "quota" in text]
    assert said[-1] == "resource quota insufficient, requested: cpu 3, used: cpu 2, limited: cpu 4"
    world.patch(kinds.RESOURCE_QUOTA, "q", {"spec": {"hard": {"cpu": "9"}}})
    world.run(30)
    assert world.running() == {"small": 1, "large": 1}


# ---- where pods go ----


def test_binpack_fills_a_node_before_the_next() -> None:
    world = VolcanoHarness(conf(PLACING, "gang", "predicates; binpack"), nodes(3))
    for at in range(4):
        world.gang(f"g{at}", 1, asks={"cpu": "1"})
        world.run(5)
    assert sorted(Counter(world.bindings().values()).values()) == [4]


def test_nodeorder_spreads_load() -> None:
    world = VolcanoHarness(conf(PLACING, "gang", "predicates; nodeorder"), nodes(3))
    world.gang("g", 3, asks={"cpu": "1"})
    world.run(5)
    assert sorted(places(world, "g").values()) == [1, 1, 1]


def test_a_queue_uses_the_nodes_of_its_groups() -> None:
    fleet = [
        built.labelled({"volcano.sh/nodegroup-name": group})
        for built, group in zip(nodes(3), ("red", "blue", "blue"), strict=True)
    ]
    required = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["blue"]}}
    text = conf(PLACING, "gang", "predicates; nodegroup; nodeorder")
    world = VolcanoHarness(text, fleet, queues=[queue("b").having(affinity=required)])
    world.gang("g", 4, queue="b", asks={"cpu": "2"})
    world.gang("late", 1, queue="b", asks={"cpu": "2"})
    world.run(10)
    assert places(world, "g") == {"n1": 2, "n2": 2}
    assert world.running() == {"g": 4}, "the red node is for others"


def test_gpus_are_packed_and_spared_by_those_who_need_none() -> None:
    def built(name: str, **gpus: str) -> Any:
        return node(name).offers(cpu="8", memory="32Gi", pods="110").offers(gpus)

    text = conf(
        PLACING,
        "gang",
        "predicates; resource-strategy-fit arguments: {resources: {nvidia.com/gpu: {type: MostAllocated, weight: 1}},"
        " sra: {enable: true, resources: nvidia.com/gpu, weight: 10, resourceWeight: {nvidia.com/gpu: 1}}}",
    )
    gpu = "nvidia.com/gpu"
    world = VolcanoHarness(text, [built("g0", **{gpu: "4"}), built("g1", **{gpu: "4"}), built("plain")])
    for at in range(4):
        world.gang(f"gpu{at}", 1, asks={"cpu": "1", gpu: "1"})
        world.gang(f"cpu{at}", 1, asks={"cpu": "1"})
        world.run(5)
    assert len(places(world, "gpu0") | places(world, "gpu1") | places(world, "gpu2") | places(world, "gpu3")) == 1
    assert places(world, "cpu0") + places(world, "cpu3") == {"plain": 2}


def test_roles_that_attract_each_other_share_a_node() -> None:
    world = VolcanoHarness(conf(PLACING, "gang", "predicates; task-topology"), nodes(2))
    wishes = {"volcano.sh/task-topology-affinity": "ps,worker", "volcano.sh/task-topology-anti-affinity": "ps"}
    world.apply(podgroup("job", 4).in_queue("default").annotated(wishes))
    for at, role in enumerate(("ps", "ps", "worker", "worker")):
        world.apply(world.member("job", at, {"cpu": "2"}).annotated({"volcano.sh/task-spec": role}))
    world.run(10)
    bound = world.bindings()
    pairs = sorted((bound[f"job-w-{at}"], "ps" if at < 2 else "worker") for at in range(4))
    assert pairs == [("n0", "ps"), ("n0", "worker"), ("n1", "ps"), ("n1", "worker")]


def test_a_gang_stays_within_one_rack() -> None:
    def rack(name: str, *names: str) -> dict[str, Any]:
        kind = VC_HYPER_NODE
        members = [{"type": "Node", "selector": {"exactMatch": {"name": one}}} for one in names]
        spec = {"tier": 1, "members": members}
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}

    world = VolcanoHarness(conf(PLACING, "gang", "predicates; network-topology-aware; nodeorder"), nodes(4))
    world.apply(rack("s0", "n0", "n1"), rack("s1", "n2", "n3"))
    world.run(2)
    near = {"mode": "hard", "highestTierAllowed": 1}
    world.apply(podgroup("job", 4).in_queue("default").having(networkTopology=near, minResources={"cpu": "8"}))
    world.apply(*(world.member("job", at, {"cpu": "2"}) for at in range(4)))
    world.run(10)
    assert set(places(world, "job")) in ({"n0", "n1"}, {"n2", "n3"})


# ---- who is evicted ----


def test_guests_leave_shared_nodes_when_the_hours_are_over() -> None:
    """It is midnight when the story begins; the zone is lent for three minutes, whatever the time zone."""
    lent = node("lent").offers(cpu="4", memory="16Gi", pods="110").labelled({"volcano.sh/revocable-zone": "night"})
    zone = f"tdm.revocable-zone.night: '{_local(0)}-{_local(3)}'"
    text = conf(f"{PLACING}, shuffle", "gang", f"predicates; tdm arguments: {{{zone}}}")
    world = VolcanoHarness(text, [lent])
    budget = {"volcano.sh/jdb-max-unavailable": "50%"}
    world.apply(podgroup("guest", 1).in_queue("default").annotated(GUEST | budget))
    world.apply(*(world.member("guest", at, {"cpu": "1"}).annotated(GUEST) for at in range(2)))
    steady = world.member("steady", 0, {"cpu": "1"}).annotated({"volcano.sh/preemptable": "false"})
    world.apply(podgroup("steady", 1).in_queue("default"), steady)
    world.run(60)
    assert world.running() == {"guest": 2}, "only guests go there"
    world.run(240)
    assert world.running() == {}


def _local(minutes: int) -> str:
    """The time of day on this machine, so long after the stories begin."""
    from datetime import datetime

    from fairlead.testing.harness import START

    return datetime.fromtimestamp(START + 60 * minutes).astimezone().strftime("%H:%M")


def test_no_more_pods_are_evicted_than_their_budget_allows() -> None:
    text = conf(f"{PLACING}, preempt", "priority; pdb", "predicates; proportion")
    world = VolcanoHarness(text, nodes(1))
    world.apply(*_classes())
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
    }
    world.apply({**budget, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "low"}}}})
    world.apply(podgroup("low", 1).in_queue("default").having(priorityClassName="low"))
    world.apply(*(world.member("low", at, {"cpu": "2"}, pod_class="low").labelled(app="low") for at in range(2)))
    world.run(10)
    world.gang("first", 1, asks={"cpu": "2"}, priority_class="high", pod_class="high")
    world.run(60)
    assert world.running() == {"low": 1, "first": 1}
    world.gang("second", 1, asks={"cpu": "2"}, priority_class="high", pod_class="high")
    world.run(60)
    assert world.running() == {"low": 1, "first": 1}, "one must stay"


def _classes() -> tuple[dict[str, Any], dict[str, Any]]:
    def made(name: str, value: int) -> dict[str, Any]:
        kind = kinds.PRIORITY_CLASS
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "value": value}

    return made("high", 1000), made("low", 10)


# ---- somebody else's policy ----


def test_an_extender_decides_where_pods_go() -> None:
    def judge(asked: dict[str, Any]) -> dict[str, Any]:
        return {} if asked["node"]["Name"] == "n2" else {"status": "not there", "code": 3}

    with ExtenderServer(judge=judge) as server:
        arguments = f"extender.urlPrefix: '{server.url}', extender.predicateVerb: judge"
        world = VolcanoHarness(conf(PLACING, "gang", f"predicates; extender arguments: {{{arguments}}}"), nodes(3))
        world.gang("g", 2, asks={"cpu": "2"})
        world.run(5)
        assert places(world, "g") == {"n2": 2}
        asked = server.requests("judge")[0]
        assert asked["task"]["Pod"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
        assert asked["node"]["Node"]["status"]["allocatable"]["cpu"] == "4"
        hang_up(world)


def hang_up(world: VolcanoHarness) -> None:
    """Close the connections to extenders."""
    for enabled in (one for driver in round_drivers(world.scheduler) for tier in driver.rounds.tiers for one in tier):
        if isinstance(enabled.plugin, VolcanoExtender):
            assert isinstance(enabled.plugin._wire, ExtenderConnection)
            enabled.plugin._wire.close()


def test_an_answer_of_more_than_ten_megabytes_is_none() -> None:
    with ExtenderServer(ready=lambda _: {"status": True, "filler": "x" * (10 * 2**20)}) as server:
        arguments = f"extender.urlPrefix: '{server.url}', extender.jobReadyVerb: ready, extender.httpTimeout: 5s"
        world = VolcanoHarness(conf(PLACING, "gang", f"predicates; extender arguments: {{{arguments}}}"), nodes(1))
        world.gang("g", 1, asks={"cpu": "2"})
        world.run(2)
        assert world.running() == {}
        hang_up(world)


# ---- resource claims ----


@pytest.mark.parametrize("claims", [False, True])
def test_a_pod_whose_resource_claim_is_missing_gets_that_reason(claims: bool) -> None:
    world = VolcanoHarness(conf(PLACING, "gang", "predicates"), nodes(1))
    world.apply(podgroup("g", 1).in_queue("default"))
    named = [{"name": "gpu", "resourceClaimName": "mine"}] if claims else []
    member = world.member("g", 0, {"cpu": "1"})
    world.apply(member.having(resourceClaims=named) if named else member)
    world.run(5)
    assert bool(world.running()) is not claims
    told = world.pod("g-w-0")["status"]["conditions"][0]["message"] if claims else ""
    assert ('could not find ResourceClaim "default/mine"' in told) is claims
