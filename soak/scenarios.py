"""What happens in a soak: one function per kind of trouble, each on a control plane of its own and with a verdict.

A scenario brings a load in both scheduling modes, lets the proxy misbehave while it is worked on, stops the trouble,
gives the scheduler time, and asks the validator. With kube-scheduler the load is as large, and has no gangs.
"""

from __future__ import annotations

import base64
import os
import random
import signal
import threading
import time
import urllib.error
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from soak.cluster import GROUPS, PODS, Cluster, gone_at_once, pod, pod_group, priority_class
from soak.load import Load
from soak.odd import odd_objects
from soak.single import single_faults
from soak.stage import Instance, Stage, staged

if TYPE_CHECKING:
    from pathlib import Path

    from soak.validator import Verdict


@dataclass(frozen=True)
class Extent:
    """How much of everything: as in a soak, or in short, as in the suite that runs on every change."""

    seconds: float = 20.0
    pods: int = 288
    kills: int = 20
    burst: int = 5000
    tokens: int = 2
    faults: int = 500


LONG, SHORT = Extent(), Extent(seconds=6.0, pods=96, kills=6, burst=1000, tokens=1, faults=20)


@dataclass
class Outcome:
    scenario: str
    verdict: Verdict
    figures: dict[str, float] = field(default_factory=dict)

    def line(self) -> str:
        more = ", ".join(f"{name} {value:.4g}" for name, value in self.figures.items())
        return f"{self.scenario}: {self.verdict.line()}" + (f"; {more}" if more else "")


Trouble = Callable[[Stage, Instance], None]


def _quiet(stage: Stage) -> None:
    for instance in stage.instances:
        faults = instance.proxy.faults
        faults.delay = faults.error_share = faults.lose_share = faults.watch_delay = faults.repeat_share = 0.0
        faults.down = faults.nonsense = False
        faults.cut_every = None


def _judged(title: str, load: Load, figures: dict[str, float] | None = None, *, leading: bool = False) -> Outcome:
    """The outcome of a load that had its time; `leading` if instances took turns."""
    logs = [one.proxy.log for one in load.stage.instances] if leading else []
    verdict = load.stage.validator.verdict(expected=load.expected, minimums=load.minimums, logs=logs)
    return Outcome(title, verdict, figures or {})


def _through(scheduler: str, title: str, trouble: Trouble, extent: Extent) -> Outcome:
    """Pods arrive while something is wrong."""
    pods, seconds = extent.pods, extent.seconds
    with staged(scheduler, nodes=20) as stage:
        instance, load = stage.start(), Load(stage)
        load.begin()
        began = time.time()
        trouble(stage, instance)
        parts = max(1, int(seconds / 2))
        for at in range(parts):
            load.make(f"p{at}", pods // parts, cpu="500m")
            time.sleep(max(0.0, 2.0 - (time.time() - began - 2 * at)))
        _quiet(stage)
        load.settle()
        requests = instance.proxy.counts(began)
        figures = {
            "requests per pod": requests.total() / pods,
            "connections": float(instance.proxy.connections),
            "patches of groups": float(requests["PATCH podgroups"] + requests["PATCH podgroups/status"]),
        }
        return _judged(title, load, figures)


def cuts(scheduler: str, extent: Extent = LONG) -> Outcome:
    def trouble(stage: Stage, instance: Instance) -> None:
        instance.proxy.faults.cut_every = (2.0, 5.0)

    return _through(scheduler, "cuts every 2 to 5 s", trouble, extent)


def errors(scheduler: str, extent: Extent = LONG) -> Outcome:
    def trouble(stage: Stage, instance: Instance) -> None:
        instance.proxy.faults.error_share = 0.05

    return _through(scheduler, "5 % errors", trouble, extent)


def lost_answers(scheduler: str, extent: Extent = LONG) -> Outcome:
    """Lost answers with a late watch: where a place is given up too soon, a node gets too much."""

    def trouble(stage: Stage, instance: Instance) -> None:
        instance.proxy.faults.lose_share = 0.2
        instance.proxy.faults.watch_delay = 0.5

    return _through(scheduler, "lost answers", trouble, extent)


def late_watches(scheduler: str, extent: Extent = LONG) -> Outcome:
    def trouble(stage: Stage, instance: Instance) -> None:
        instance.proxy.faults.watch_delay = 0.3
        instance.proxy.faults.repeat_share = 0.2

    return _through(scheduler, "late and repeated watches", trouble, extent)


def nonsense(scheduler: str, extent: Extent = LONG) -> Outcome:
    def trouble(stage: Stage, instance: Instance) -> None:
        instance.proxy.faults.nonsense = True

    return _through(scheduler, "a line that is no event", trouble, replace(extent, pods=64, seconds=4.0))


def silence(scheduler: str, extent: Extent = LONG) -> Outcome:
    """All watches fall silent without a goodbye, as behind a proxy that died: how long is it blind?"""
    with staged(scheduler, nodes=5) as stage:
        instance, load = stage.start(), Load(stage)
        load.begin()
        instance.proxy.faults.silent_before = time.time()
        load.make("unseen", 16)
        began = time.time()
        load.settle(400)
        return _judged("silent connections", load, {"blind seconds": time.time() - began - 2})


def api_killed(scheduler: str, extent: Extent = LONG) -> Outcome:
    def trouble(stage: Stage, instance: Instance) -> None:
        stage.cluster.make_pods([f"before-{at}" for at in range(100)], cpu="50m")
        stage.plane.restart_api_server()

    return _through(scheduler, "API server killed", trouble, extent)


def etcd_stopped(scheduler: str, extent: Extent = LONG) -> Outcome:
    """etcd does not answer for 20 s: writes hang, and some are done although they timed out."""

    def trouble(stage: Stage, instance: Instance) -> None:
        stage.cluster.make_pods([f"before-{at}" for at in range(100)])
        stage.plane.signal("etcd", signal.SIGSTOP)
        time.sleep(20)
        stage.plane.signal("etcd", signal.SIGCONT)

    return _through(
        scheduler, "etcd stopped for 20 s", trouble, replace(extent, pods=min(192, extent.pods), seconds=6.0)
    )


def leader_killed_and_stopped(scheduler: str, extent: Extent = LONG) -> Outcome:
    """Two candidates. The leader is killed in the middle of its work, and starts again as a candidate; then the new
    leader is stopped for longer than its lease, and goes on when the lease is another's."""
    with staged(scheduler, nodes=20) as stage:
        load, first = Load(stage), stage.start("alpha", elect=True)
        load.begin()
        second = stage.start("beta", elect=True)
        time.sleep(4)
        load.make("killed", 320)
        first.kill()
        stage.keep_running()
        load.make("meanwhile", 64)
        load.settle()
        load.make("stopped", 320)
        second.kill(signal.SIGSTOP)
        load.make("late", 64)
        time.sleep(20)
        second.kill(signal.SIGCONT)
        load.settle()
        return _judged("leader killed and stopped", load, leading=True)


def kills(scheduler: str, extent: Extent = LONG) -> Outcome:
    """The scheduler is killed at random moments, again and again, while pods arrive."""
    rng = random.Random(1)
    with staged(scheduler, nodes=20) as stage:
        instance, load = stage.start(), Load(stage)
        load.begin()
        for turn in range(extent.kills):
            load.make(f"k{turn}", 16, cpu="50m")
            time.sleep(rng.uniform(0.2, 3.0))
            instance.kill()
            stage.restart(instance)
        load.settle()
        return _judged(f"{extent.kills} kills", load)


def many_kills(scheduler: str, extent: Extent = LONG) -> Outcome:
    return kills(scheduler, replace(extent, kills=5 * extent.kills))


def burst_deleted(scheduler: str, extent: Extent = LONG) -> Outcome:
    """A burst of pods, all of which are deleted while they are made and placed; then pods that need all the room."""
    pods = extent.burst
    with staged(scheduler, nodes=50) as stage:
        load, cluster = Load(stage), stage.cluster
        stage.start()
        load.begin()
        going = [*load.expected]
        load.expected.clear()
        calls = load.calls("b", pods, cpu="10m")
        names, load.expected, load.minimums = [*load.expected], [], {}
        making = threading.Thread(target=cluster.many, args=(calls,))
        making.start()
        while making.is_alive() and len(cluster.pods()) < pods / 3:
            time.sleep(0.5)
        for name in [*going, *(doc["metadata"]["name"] for doc in cluster.pods())]:
            cluster.delete(name)
        making.join()
        there = [name for doc in cluster.pods() if (name := doc["metadata"]["name"]) in {*names, *going}]
        cluster.many([gone_at_once(name) for name in there])
        load.make("after", 200, cpu="2")
        load.settle()
        return _judged("a burst deleted midway", load)


def preemption_through_faults(scheduler: str, extent: Extent = LONG) -> Outcome:
    """Victims are deleted for somebody: every preemptor has a node in the end, and no more victims went than needed.
    Victims are of both modes. Preemptors are kube's and stand alone: what the Volcano profile evicts in a queue is for
    its plugins to say, and a gang may evict for members that then find room elsewhere."""
    with staged(scheduler, nodes=10) as stage:
        cluster, victims, load = stage.cluster, Load(stage), Load(stage, kube_only=True)
        cluster.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority_class("high", 1000))
        instance = stage.start()
        low = victims.make("low", 40, cpu="2", alone=True)
        cluster.wait_bound(low, 240)
        instance.proxy.faults.lose_share = 0.2
        instance.proxy.faults.error_share = 0.05
        instance.proxy.faults.watch_delay = 0.3
        load.make("high", 20, cpu="2", priority="high", alone=True)
        time.sleep(extent.seconds)
        _quiet(stage)
        load.settle()
        gone = [seen.name for seen in stage.validator.pods.values() if seen.ended and seen.name.startswith("low")]
        outcome = _judged("preemption through faults", load, {"victims per preemptor": len(gone) / 20})
        outcome.verdict.evicted_for_nobody = gone[20:]
        return outcome


# ---- odd objects ----


def odd(scheduler: str, extent: Extent = LONG) -> Outcome:
    """Objects that the API server accepts and nobody expects, and after each a probe pod and probe gangs that must be
    placed, in both scheduling modes."""
    with staged(scheduler, nodes=8) as stage:
        stage.start()
        Load(stage).begin()
        accepted, unplaced = 0, []
        for at, (path, doc) in enumerate(odd_objects(volcano=stage.volcano)):
            try:
                stage.cluster.call("POST", path, doc)
            except urllib.error.HTTPError:
                continue
            accepted += 1
            try:
                _probe(stage, at)
            except TimeoutError as error:
                unplaced.append(f"after {path.rpartition('/')[2]} {doc['metadata']['name']}: {error}")
                if len(unplaced) == 3:
                    break
        verdict = stage.validator.verdict()
        verdict.unbound = unplaced
        return Outcome("odd objects", verdict, {"accepted": float(accepted)})


def _probe(stage: Stage, at: int) -> None:
    """A pod and, with fairlead, a gang of two in each mode; they go when they have nodes."""
    calls = [("POST", PODS, pod(f"probe-{at}", cpu="10m"))]
    for scheduler in ("default-scheduler", "volcano") if stage.volcano else ():
        group = f"probe-{at}-{scheduler[0]}"
        calls.append(("POST", GROUPS, pod_group(group, 2)))
        calls += [
            ("POST", PODS, pod(f"{group}-{member}", cpu="10m", scheduler=scheduler, group=group)) for member in "ab"
        ]
    for call in calls:
        stage.cluster.call(*call)
    names = [doc["metadata"]["name"] for _, path, doc in calls if path == PODS]
    stage.cluster.wait_bound(names, 90, pause=0.1)
    stage.cluster.many([gone_at_once(name) for name in names], at_once=5)


def single(scheduler: str, extent: Extent = LONG) -> Outcome:
    """One fault at a time, each aimed at one request; see soak/single.py."""
    return Outcome("one fault at a time", single_faults(scheduler))


# ---- tokens ----


def tokens_rotated(scheduler: str, extent: Extent = LONG) -> Outcome:
    """The token file changes and the old token is revoked, as for a service account, with connections cut so that
    every request has to show its token again."""
    with staged(scheduler, nodes=20) as stage:
        load, file = Load(stage), stage.directory / "token"
        tokens = _Tokens(stage.cluster, file)
        tokens.give("token-0")
        instance = stage.start(token_file=file)
        load.begin()
        for turn in range(extent.tokens):
            old = tokens.current
            tokens.give(f"token-{turn + 1}")
            tokens.revoke(f"token-{turn}", old)
            instance.proxy.cut_all()
            load.make(f"t{turn}", 64)
            load.settle()
        return _judged("tokens rotated", load)


class _Tokens:
    """Tokens of a service account that may do everything, each bound to a Secret: it is valid as long as that is
    there."""

    def __init__(self, cluster: Cluster, file: Path) -> None:
        self._cluster, self._file = cluster, file
        self.current = ""
        cluster.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "soak"}})
        cluster.call(
            "POST",
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            {
                "metadata": {"name": "soak"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"kind": "ServiceAccount", "name": "soak", "namespace": "default"}],
            },
        )

    def give(self, name: str) -> None:
        """A new token into the file, in one step."""
        content = {"metadata": {"name": name}, "data": {"none": base64.b64encode(b"none").decode()}}
        secret = self._cluster.call("POST", "/api/v1/namespaces/default/secrets", content)
        bound_to = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": secret["metadata"]["uid"]}
        asked = {"spec": {"boundObjectRef": bound_to, "expirationSeconds": 3600}}
        given = self._cluster.call("POST", "/api/v1/namespaces/default/serviceaccounts/soak/token", asked)
        self.current = given["status"]["token"]
        fresh = self._file.with_suffix(".fresh")
        fresh.write_text(self.current)
        os.replace(fresh, self._file)

    def revoke(self, name: str, token: str) -> None:
        """Until the API server knows the token no more; it remembers who somebody was for ten seconds."""
        self._cluster.call("DELETE", f"/api/v1/namespaces/default/secrets/{name}")
        old, ends = Cluster(self._cluster.server, token), time.monotonic() + 60
        while time.monotonic() < ends:
            try:
                old.call("GET", "/api/v1/nodes?limit=1")
            except urllib.error.HTTPError as error:
                if error.code == 401:
                    return
            time.sleep(1)
        raise TimeoutError(f"the token of {name} is still valid")


SCENARIOS: dict[str, Callable[[str, Extent], Outcome]] = {
    "cuts": cuts, "errors": errors, "lost": lost_answers, "late": late_watches, "nonsense": nonsense,
    "silence": silence, "api-killed": api_killed, "etcd-stopped": etcd_stopped, "leader": leader_killed_and_stopped,
    "kills": kills, "many-kills": many_kills, "burst": burst_deleted, "preemption": preemption_through_faults,
    "odd": odd, "tokens": tokens_rotated, "single": single,
}  # fmt: skip
