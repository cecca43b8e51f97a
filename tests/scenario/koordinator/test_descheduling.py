"""Koordinator's descheduler on virtual time, with its scheduler: pods move, and nothing is lost on the way."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.core.model.times import seconds_of
from fairlead.koordinator.agents.node_agents import NodeAgents
from fairlead.koordinator.descheduling.controller import Descheduler
from fairlead.koordinator.descheduling.reading import DESCHEDULER_PRESET, read_descheduler
from fairlead.koordinator.kinds import KOORD_MIGRATION_JOB, KOORD_RESERVATION
from fairlead.testing.builders import Builder, node, replica_set
from fairlead.testing.harness import Harness

JOB, RESERVATION = KOORD_MIGRATION_JOB, KOORD_RESERVATION


def cluster_of(text: str = DESCHEDULER_PRESET, nodes: Any = 3, **options: Any) -> Harness:
    moves = partial(Descheduler, settings=read_descheduler(text))
    return Harness(nodes=nodes, config="koordinator", controllers=[NodeAgents, moves], **options)


def without_balance() -> str:
    return DESCHEDULER_PRESET.replace("enabled:\n      - name: LowNodeLoad", "enabled: []")


def web(name: str, replicas: int, cpu: str = "1", usage: str = "") -> Doc:
    doc = replica_set(name).replicas(replicas).doc()
    template = doc["spec"]["template"]
    template["spec"]["schedulerName"] = "koord-scheduler"
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    if usage:
        template["metadata"]["annotations"] = {"fairlead.io/usage": usage}
    return doc


def job(name: str, target: str, **spec: Any) -> Doc:
    named = {"namespace": "default", "name": target}
    head = {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": {"name": name}}
    return {**head, "spec": {"podRef": named, "ttl": "5m", **spec}}


def state(cluster: Harness, name: str) -> Doc:
    found = cluster.store.get(JOB, "", name)
    assert found is not None
    return dict(found.get("status") or {})


def pods(cluster: Harness) -> dict[str, str]:
    return {
        one["metadata"]["name"]: one["spec"].get("nodeName", "")
        for one in cluster.store.list(kinds.POD)
        if not one["metadata"].get("deletionTimestamp")
    }


def on(cluster: Harness, name: str) -> int:
    return sum(there == name for there in pods(cluster).values())


def test_a_pod_moves_into_a_reservation_on_another_node() -> None:
    cluster = cluster_of(without_balance())
    cluster.apply(web("web", 3))
    cluster.run(5)
    before = pods(cluster)
    moved, source = sorted(before.items())[0]
    cluster.apply(job("m", moved, ttl="1m"))
    cluster.run(30)
    status = state(cluster, "m")
    assert status["phase"] == "Succeeded", status
    assert status["nodeName"] != source
    after = pods(cluster)
    assert moved not in after
    (new,) = set(after) - set(before)
    assert after[new] == status["nodeName"]
    assert status["message"].startswith(f'Bind Pod "default/{new}" in Reservation "')
    types = [one["type"] for one in status["conditions"]]
    assert types[:3] == ["ReservationCreated", "ReservationScheduled", "Eviction"]
    assert all(one["status"] == "True" for one in status["conditions"]), status["conditions"]
    cluster.run(340)
    assert cluster.store.get(JOB, "", "m") is None, "a job that is over is deleted in the end"


def test_nothing_is_evicted_before_there_is_another_place_and_time_takes_the_reservation_back() -> None:
    cluster = cluster_of(without_balance(), nodes=2)
    cluster.apply(web("web", 2, cpu="6"))
    cluster.run(5)
    before = pods(cluster)
    cluster.apply(job("m", sorted(before)[0]))
    cluster.run(120)
    assert pods(cluster) == before
    waiting = state(cluster, "m")
    assert (waiting["phase"], waiting["status"], waiting["reason"]) == (
        "Running",
        "ReservationScheduled",
        "Unschedulable",
    )
    assert "Insufficient cpu" in waiting["message"]
    assert len(list(cluster.store.list(RESERVATION))) == 1
    cluster.run(200)
    ended = state(cluster, "m")
    assert (ended["phase"], ended["reason"], ended["message"]) == ("Failed", "Timeout", "Abort job caused by timeout")
    assert not list(cluster.store.list(RESERVATION))
    assert pods(cluster) == before


def cordon(cluster: Harness, *names: str, cordoned: bool) -> None:
    for name in names:
        doc = cluster.store.get(kinds.NODE, "", name)
        assert doc is not None
        cluster.apply({**doc, "spec": {**doc["spec"], "unschedulable": cordoned}})


def test_an_overloaded_node_is_relieved_until_it_is_below_its_threshold() -> None:
    # More than five passes take longer than a metric, so that no pass acts on what the one before has mended.
    text = DESCHEDULER_PRESET.replace("Interval: 10s", "Interval: 15s")
    cluster = cluster_of(text, nodes=[node("busy"), node("idle-1"), node("idle-2")])
    cordon(cluster, "idle-1", "idle-2", cordoned=True)
    for number in range(4):  # of 8 cores 7.2 are used: two pods have to go for the rest to be below 6
        cluster.apply(web(f"web-{number}", 2, cpu="500m", usage="cpu=900m,memory=1Gi"))
    cluster.run(10)
    assert on(cluster, "busy") == 8
    cordon(cluster, "idle-1", "idle-2", cordoned=False)
    cluster.run(35)
    assert not list(cluster.store.list(JOB)), "overload must last for more than five passes"
    cluster.run(360)
    jobs = list(cluster.store.list(JOB))
    assert {one["status"]["phase"] for one in jobs} == {"Succeeded"}
    assert on(cluster, "busy") == 6
    assert len(pods(cluster)) == 8
    said = {one["metadata"]["annotations"]["koordinator.sh/evict-reason"] for one in jobs}
    assert "node is overutilized, node cpu usage(90.00%)>threshold(75.00%)" in said


def test_jobs_of_one_workload_take_turns_and_it_loses_one_at_a_time() -> None:
    cluster = cluster_of(without_balance())
    cluster.apply(web("web", 4))
    cluster.run(5)
    for number, name in enumerate(sorted(pods(cluster))):
        cluster.apply(job(f"m{number}", name, ttl="30m"))
        cluster.run(1)
    least, most = 4, 0
    for _ in range(100):
        cluster.run(5)
        phases = [state(cluster, f"m{number}").get("phase", "") for number in range(4)]
        most = max(most, phases.count("Running"))
        least = min(least, len(pods(cluster)))
    assert phases == ["Succeeded"] * 4, [state(cluster, f"m{number}") for number in range(4)]
    assert most == 2, "of four replicas two may be under way"
    assert least >= 3
    evicted = sorted(
        one["lastTransitionTime"]
        for number in range(4)
        for one in state(cluster, f"m{number}")["conditions"]
        if one["type"] == "Eviction"
    )
    times = [seconds_of(one) for one in evicted]
    assert all(later - earlier >= 145 for earlier, later in pairwise(times)), "two in five minutes"
    assert len(pods(cluster)) == 4


EXPENSIVE = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 30s
profiles:
- plugins:
    balance:
      enabled:
      - name: CustomPriority
  pluginConfig:
  - name: CustomPriority
    args:
      mode: DrainNode
      autoCordon: true
      evictionOrder:
      - name: on-demand
        nodeSelector: {matchLabels: {price: high}}
      - name: spot
        nodeSelector: {matchLabels: {price: low}}
  - name: MigrationController
    args:
      maxMigratingPerNode: 0
      maxMigratingPerWorkload: 100%
      maxUnavailablePerWorkload: 100%
      skipCheckExpectedReplicas: true
      objectLimiters:
        workload: {duration: 0s}
"""


def cheap(name: str) -> Builder:
    return node(name).labelled(price="low").offers(cpu="3", memory="32Gi", pods="110")


def test_an_expensive_node_is_drained_once_cheap_ones_have_room_for_all_of_it() -> None:
    cluster = cluster_of(EXPENSIVE, nodes=[node("dear").labelled(price="high"), cheap("cheap")])
    cordon(cluster, "cheap", cordoned=True)
    cluster.apply(web("web", 4))
    cluster.run(10)
    assert on(cluster, "dear") == 4
    cordon(cluster, "cheap", cordoned=False)
    cluster.run(120)
    assert on(cluster, "dear") == 4, "three cores have no room for four pods, so none goes"
    cluster.apply(cheap("cheap-2"))
    cluster.run(300)
    assert on(cluster, "dear") == 0
    assert len(pods(cluster)) == 4
    dear = cluster.store.get(kinds.NODE, "", "dear")
    assert dear is not None
    assert dear["spec"]["unschedulable"] is True


def test_each_profile_moves_pods_of_its_own_nodes() -> None:
    head, profile = EXPENSIVE.split("- plugins:")
    text = head + "".join(
        f"- name: {zone}\n  nodeSelector: {{matchLabels: {{zone: {zone}}}}}\n  plugins:{profile}" for zone in ("a", "b")
    )
    dear = [node(f"dear-{zone}").labelled(price="high", zone=zone) for zone in ("a", "b")]
    cluster = cluster_of(text, nodes=[*dear, cheap("cheap-a").labelled(zone="a"), cheap("cheap-b").labelled(zone="b")])
    for zone in ("a", "b"):
        cordon(cluster, f"cheap-{zone}", cordoned=True)
    cluster.apply(web("web", 4))
    cluster.run(10)
    assert on(cluster, "dear-a")
    assert on(cluster, "dear-b")
    for zone in ("a", "b"):
        cordon(cluster, f"cheap-{zone}", cordoned=False)
    cluster.run(300)
    assert on(cluster, "dear-a") == on(cluster, "dear-b") == 0
    assert len(pods(cluster)) == 4
