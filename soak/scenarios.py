"""What happens in a soak: one function per kind of trouble, each on a control plane of its own and with a verdict.

A scenario brings a load, lets the proxy misbehave while it is worked on, stops the trouble, gives the scheduler time,
and asks the validator. `volcano` scenarios are fairlead's alone.
"""

from __future__ import annotations

import random
import signal
import time
import urllib.error
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from soak.cluster import PODS, node, pod, priority_class
from soak.stage import Instance, Stage, staged

if TYPE_CHECKING:
    from soak.validator import Verdict

PATIENCE = 120.0


@dataclass
class Outcome:
    scenario: str
    verdict: Verdict
    figures: dict[str, float] = field(default_factory=dict)

    def line(self) -> str:
        more = ", ".join(f"{name} {value:.4g}" for name, value in self.figures.items())
        return f"{self.scenario}: {self.verdict.line()}" + (f"; {more}" if more else "")


Trouble = Callable[[Stage, Instance], None]


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{at}" for at in range(count)]


def _settle(stage: Stage, expected: list[str]) -> None:
    try:
        stage.cluster.wait_bound(expected, PATIENCE)
    except TimeoutError as error:
        stage.say(str(error))
    time.sleep(2)


def _quiet(stage: Stage) -> None:
    for instance in stage.instances:
        faults = instance.proxy.faults
        faults.delay = faults.error_share = faults.lose_share = faults.watch_delay = faults.repeat_share = 0.0
        faults.down = faults.nonsense = False
        faults.cut_every = None


def _through(scheduler: str, title: str, trouble: Trouble, *, pods: int = 300, seconds: float = 20.0) -> Outcome:
    """Pods arrive while something is wrong."""
    with staged(scheduler, nodes=20) as stage:
        instance = stage.start()
        stage.cluster.make_pods(["first"])
        stage.cluster.wait_bound(["first"], 60)
        began = time.time()
        trouble(stage, instance)
        names = _names("p", pods)
        parts = max(1, int(seconds / 2))
        for at in range(parts):
            stage.cluster.make_pods(names[at::parts], cpu="500m")
            time.sleep(max(0.0, 2.0 - (time.time() - began - 2 * at)))
        _quiet(stage)
        _settle(stage, names)
        requests = len([one for one in instance.proxy.log if one.at >= began])
        figures = {"requests per pod": requests / pods, "connections": float(instance.proxy.connections)}
        return Outcome(title, stage.validator.verdict(expected=set(names)), figures)


def cuts(scheduler: str) -> Outcome:
    def trouble(stage: Stage, instance: Instance) -> None:
        instance.proxy.faults.cut_every = (2.0, 5.0)

    return _through(scheduler, "cuts every 2 to 5 s", trouble)


def errors(scheduler: str) -> Outcome:
    def trouble(stage: Stage, instance: Instance) -> None:
        instance.proxy.faults.error_share = 0.05

    return _through(scheduler, "5 % errors", trouble)


def lost_answers(scheduler: str) -> Outcome:
    """Lost answers with a late watch: where a place is given up too soon, a node gets too much."""

    def trouble(stage: Stage, instance: Instance) -> None:
        instance.proxy.faults.lose_share = 0.2
        instance.proxy.faults.watch_delay = 0.5

    return _through(scheduler, "lost answers", trouble)


def late_watches(scheduler: str) -> Outcome:
    def trouble(stage: Stage, instance: Instance) -> None:
        instance.proxy.faults.watch_delay = 0.3
        instance.proxy.faults.repeat_share = 0.2

    return _through(scheduler, "late and repeated watches", trouble)


def nonsense(scheduler: str) -> Outcome:
    def trouble(stage: Stage, instance: Instance) -> None:
        instance.proxy.faults.nonsense = True

    return _through(scheduler, "a line that is no event", trouble, pods=50, seconds=4)


def silence(scheduler: str) -> Outcome:
    """All watches fall silent without a goodbye, as behind a proxy that died: how long is it blind?"""
    with staged(scheduler, nodes=5) as stage:
        instance = stage.start()
        stage.cluster.make_pods(["first"])
        stage.cluster.wait_bound(["first"], 60)
        instance.proxy.faults.silent_before = time.time()
        stage.cluster.make_pods(["unseen"])
        began = time.time()
        _settle(stage, ["unseen"])
        figures = {"blind seconds": time.time() - began - 2}
        return Outcome("silent connections", stage.validator.verdict(expected={"unseen"}), figures)


def api_killed(scheduler: str) -> Outcome:
    def trouble(stage: Stage, instance: Instance) -> None:
        stage.cluster.make_pods(_names("before", 100))
        stage.plane.restart_api_server()

    return _through(scheduler, "API server killed", trouble)


def etcd_stopped(scheduler: str) -> Outcome:
    """etcd does not answer for 20 s: writes hang, and some are done although they timed out."""

    def trouble(stage: Stage, instance: Instance) -> None:
        etcd = next(process for name, process in stage.plane._running if name == "etcd")
        stage.cluster.make_pods(_names("before", 100))
        etcd.send_signal(signal.SIGSTOP)
        time.sleep(20)
        etcd.send_signal(signal.SIGCONT)

    return _through(scheduler, "etcd stopped for 20 s", trouble, pods=200, seconds=6)


def leader_killed_and_stopped(scheduler: str) -> Outcome:
    """Two candidates: the leader is stopped for longer than its lease in the middle of its work, then continued."""
    with staged(scheduler, nodes=20) as stage:
        first = stage.start("alpha", elect=True)
        stage.cluster.make_pods(["first"])
        stage.cluster.wait_bound(["first"], 90)
        second = stage.start("beta", elect=True)
        time.sleep(5)
        names = _names("p", 400)
        stage.cluster.make_pods(names[:300], cpu="100m")
        first.kill(signal.SIGSTOP)
        stage.cluster.make_pods(names[300:], cpu="100m")
        time.sleep(25)
        first.kill(signal.SIGCONT)
        _settle(stage, names)
        logs = {one.proxy.identity: one.proxy.log for one in (first, second)}
        return Outcome("leader stopped", stage.validator.verdict(expected=set(names), logs=logs))


def kills(scheduler: str, *, times: int = 100) -> Outcome:
    """The scheduler is killed at random moments, again and again, while pods arrive."""
    rng = random.Random(1)
    with staged(scheduler, nodes=20) as stage:
        instance = stage.start()
        stage.cluster.make_pods(["first"])
        stage.cluster.wait_bound(["first"], 60)
        names: list[str] = []
        for turn in range(times):
            more = _names(f"k{turn}", 10)
            names += more
            stage.cluster.make_pods(more, cpu="100m")
            time.sleep(rng.uniform(0.05, 1.5))
            instance.kill()
            stage.restart(instance)
        _settle(stage, names)
        return Outcome(f"{times} kills", stage.validator.verdict(expected=set(names)))


def burst_deleted(scheduler: str, *, pods: int = 5000) -> Outcome:
    """A burst of pods, of which most are deleted while they are being placed."""
    with staged(scheduler, nodes=50) as stage:
        stage.start()
        stage.cluster.make_pods(["first"])
        stage.cluster.wait_bound(["first"], 60)
        names = _names("b", pods)
        stage.cluster.make_pods(names, cpu="10m")
        stage.cluster.many([("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0}) for name in names])
        last = _names("after", 200)
        stage.cluster.make_pods(last, cpu="2")
        _settle(stage, last)
        return Outcome("a burst deleted midway", stage.validator.verdict(expected=set(last)))


def preemption_through_faults(scheduler: str) -> Outcome:
    """Victims are deleted for somebody: every preemptor has a node in the end, and no more victims went than needed."""
    with staged(scheduler, nodes=10) as stage:
        cluster = stage.cluster
        cluster.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority_class("high", 1000))
        instance = stage.start()
        low, high = _names("low", 40), _names("high", 20)
        cluster.make_pods(low, cpu="2")
        cluster.wait_bound(low, 60)
        instance.proxy.faults.lose_share = 0.2
        instance.proxy.faults.error_share = 0.05
        instance.proxy.faults.watch_delay = 0.3
        cluster.many([("POST", PODS, pod(name, cpu="2", priority="high")) for name in high])
        time.sleep(20)
        _quiet(stage)
        _settle(stage, high)
        gone = sum(1 for seen in stage.validator.pods.values() if seen.ended and seen.name.startswith("low"))
        verdict = stage.validator.verdict(expected=set(high))
        return Outcome("preemption through faults", verdict, {"victims per preemptor": gone / len(high)})


ODD_NODES: list[dict[str, object]] = [
    {"cpu": "9223372036854775807", "memory": "8191Pi", "pods": "9223372036854775807"},
    {"cpu": "0", "memory": "0", "pods": "0"},
    {"cpu": "1n", "memory": "1m", "pods": "1"},
    {"cpu": "8", "memory": "64Gi", "pods": "110", "example.com/thing": "9223372036854775807"},
]


def odd_objects(scheduler: str) -> Outcome:
    """Objects that the API server accepts and nobody expects, and after each a probe pod that must be placed."""
    with staged(scheduler, nodes=3) as stage:
        stage.start()
        stage.cluster.make_pods(["first"])
        stage.cluster.wait_bound(["first"], 60)
        accepted, probes = 0, []
        for at, (path, doc) in enumerate(_odd_documents()):
            try:
                stage.cluster.call("POST", path, doc)
                accepted += 1
            except urllib.error.HTTPError:
                continue
            probes.append(f"probe-{at}")
            stage.cluster.make_pods([probes[-1]], cpu="10m")
            stage.cluster.wait_bound([probes[-1]], 60)
        return Outcome("odd objects", stage.validator.verdict(expected=set(probes)), {"accepted": float(accepted)})


def _odd_documents() -> list[tuple[str, dict[str, object]]]:
    """Sizes, selectors, tolerations, affinities and names at the edges of what validation lets through."""
    found: list[tuple[str, dict[str, object]]] = []
    for at, room in enumerate(ODD_NODES):
        doc = node(f"odd-{at}")
        doc["status"]["capacity"] = doc["status"]["allocatable"] = room
        found.append(("/api/v1/nodes", doc))
    found.append(("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}}))
    odd: list[dict[str, object]] = [
        {"nodeName": "nobody"}, {"nodeSelector": {"a": ""}}, {"priority": None}, {"hostNetwork": True},
        {"tolerations": [{"operator": "Exists"}]}, {"tolerations": [{"key": "k", "operator": "Exists", "effect": ""}]},
        {"schedulingGates": [{"name": "a"}]}, {"overhead": {"cpu": "1"}}, {"topologySpreadConstraints": []},
        {"affinity": {}}, {"affinity": {"nodeAffinity": {}}}, {"affinity": {"podAffinity": {}}},
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}},
        {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchExpressions": []}}]}}},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "x", "operator": "Gt", "values": ["9223372036854775807"]}]}]}}}},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["none"]}]}]}}}},
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "none", "labelSelector": {}}]}}},
        {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"}}]}}},
        {"topologySpreadConstraints": [{"maxSkew": 2147483647, "topologyKey": "x",
                                        "whenUnsatisfiable": "ScheduleAnyway"}]},
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule",
                                        "minDomains": 2147483647, "labelSelector": {}}]},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]},
        {"volumes": [{"name": "v", "csi": {"driver": "none"}}]},
        {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Ei"}}}}}}]},
        {"resourceClaims": [{"name": "c", "resourceClaimName": "none"}]},
    ]  # fmt: skip
    for at, spec in enumerate(odd):
        doc = pod(f"odd-{at}")
        doc["spec"] = {**doc["spec"], **spec}
        found.append((PODS, doc))
    for at, asks in enumerate(("0", "1n", "9223372036854775807", "9223372036854775807m", "1e18", "0.0001")):
        found.append((PODS, pod(f"odd-cpu-{at}", cpu=asks)))
    ports = pod("odd-ports")
    ports["spec"]["containers"][0]["ports"] = [{"containerPort": 65535, "hostPort": 65535, "hostIP": "::"}]
    found.append((PODS, ports))
    return found


SCENARIOS: dict[str, Callable[[str], Outcome]] = {
    "cuts": cuts, "errors": errors, "lost": lost_answers, "late": late_watches, "nonsense": nonsense,
    "silence": silence, "api-killed": api_killed, "etcd-stopped": etcd_stopped, "leader": leader_killed_and_stopped,
    "kills": kills, "burst": burst_deleted, "preemption": preemption_through_faults, "odd": odd_objects,
}  # fmt: skip
