"""One fault at a time, each aimed at one request, on one node that is full: what is kept too long shows at once.

The answer to a gang member's bind is lost while the watch is late; two binds of each pod of a gang fail alike; a lease
request hangs; pods end. After each the node must be free again, and SIGUSR2 must say that memory and API agree.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from soak.cluster import GROUPS, PODS, gone_at_once, pod, pod_group
from soak.stage import KUBE, Instance, Stage, staged

if TYPE_CHECKING:
    from soak.validator import Verdict

_AGREES, _DIFFERS = "memory and API agree", ("cache mismatch", "cache is inconsistent")
_PATIENCE = 90.0
_HUNG = 14.0
"""Seconds after which a lease is lost that nobody has renewed: kube-scheduler's renew deadline is 10."""


def single_faults(scheduler: str) -> Verdict:
    """The verdict over all of them. kube-scheduler has no gangs here, so it gets those of single pods only."""
    with staged(scheduler, nodes=1) as stage:
        instance = stage.start(elect=True)
        stage.cluster.make_pods(["first"], cpu="1m")
        stage.cluster.wait_bound(["first"], _PATIENCE)
        found: list[str] = []
        for mode in ["default-scheduler", *(["volcano"] if stage.volcano else [])]:
            _lost_bind_of_a_member(stage, instance, mode)
            found += _left_over(stage, instance, f"a lost answer to a bind of {mode}")
            _two_equal_failures(stage, instance, mode)
            found += _left_over(stage, instance, f"two failed binds of {mode}")
        found += _hung_lease(stage, instance)
        _ended_pods(stage)
        found += _left_over(stage, instance, "pods that ended")
        verdict = stage.validator.verdict(expected=[])
        verdict.inconsistent += found
        return verdict


def _gang(stage: Stage, prefix: str, mode: str, count: int) -> list[str]:
    """So many pods that fill the node, a gang if the mode of this stage has gangs."""
    names = [f"{prefix}-{mode[:1]}-{at}" for at in range(count)]
    group = f"{prefix}-{mode[:1]}" if stage.volcano else ""
    if group:
        stage.cluster.call("POST", GROUPS, pod_group(group, count))
    for name in names:
        stage.cluster.call("POST", PODS, pod(name, cpu=f"{7 // count}", scheduler=mode, group=group))
    return names


def _lost_bind_of_a_member(stage: Stage, instance: Instance, mode: str) -> None:
    """The server binds the member, the answer is lost, and the watch is half a second late."""
    faults = instance.proxy.faults
    faults.watch_delay, faults.lose = 0.5, (lost := _First(1, lambda method, path: path.endswith("-1/binding")))
    names = _gang(stage, "lost", mode, 2)
    stage.cluster.wait_bound(names, _PATIENCE)
    lost.must_have_met(1)
    stage.cluster.many([gone_at_once(name) for name in names])
    time.sleep(2)
    faults.watch_delay, faults.lose = 0.0, _never


def _two_equal_failures(stage: Stage, instance: Instance, mode: str) -> None:
    """Each bind fails twice with the same words, so that the second status says nothing new."""
    instance.proxy.faults.fail = failing = _First(2, lambda method, path: path.endswith("/binding"))
    names = _gang(stage, "twice", mode, 4)
    stage.cluster.wait_bound(names, _PATIENCE)
    failing.must_have_met(len(names))
    instance.proxy.faults.fail = _never
    stage.cluster.many([gone_at_once(name) for name in names])


def _hung_lease(stage: Stage, instance: Instance) -> list[str]:
    """One request for the lease never comes back: the scheduler must go on leading and placing."""
    instance.proxy.faults.hang = hanging = _First(1, lambda method, path: method == "PUT" and "/leases/" in path)
    time.sleep(_HUNG)
    hanging.must_have_met(1)
    instance.proxy.faults.hang = _never
    if instance.process.poll() is not None:
        return ["the scheduler ended because one lease request hung"]
    return _left_over(stage, instance, "a hung lease request")


def _ended_pods(stage: Stage) -> None:
    names = [f"ended-{at}" for at in range(4)]
    stage.cluster.make_pods(names, cpu="1")
    stage.cluster.wait_bound(names, _PATIENCE)
    for name in names:
        stage.cluster.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}})


def _left_over(stage: Stage, instance: Instance, after: str) -> list[str]:
    """What is wrong afterwards: a pod that needs nearly all of the node finds no room, or memory and API differ."""
    stage.cluster.call("POST", PODS, pod("whole", cpu="7900m"))
    found: list[str] = []
    try:
        stage.cluster.wait_bound(["whole"], 30)
    except TimeoutError:
        found.append(f"after {after} the node is not free")
    stage.cluster.call(*gone_at_once("whole"))
    time.sleep(1)
    if stage.scheduler != KUBE:
        found += [f"after {after}: {line}" for line in _cache_said(instance)]
    return found


def _cache_said(instance: Instance) -> list[str]:
    """What SIGUSR2's comparison complains of; nothing if memory and API agree."""
    before = len(instance.log.read_text())
    instance.kill(signal.SIGUSR2)
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        lines = instance.log.read_text()[before:].splitlines()
        if wrong := [line for line in lines if any(text in line for text in _DIFFERS)]:
            return wrong
        if any(_AGREES in line for line in lines):
            return []
        time.sleep(0.2)
    return ["SIGUSR2 was not answered"]


def _never(method: str, path: str) -> bool:
    return False


class _First:
    """The first so many requests to each path that `matches`."""

    def __init__(self, times: int, matches: Callable[[str, str], bool]) -> None:
        self._times, self._matches = times, matches
        self.met: Counter[str] = Counter()

    def __call__(self, method: str, path: str) -> bool:
        if not self._matches(method, path):
            return False
        self.met[path] += 1
        return self.met[path] <= self._times

    def must_have_met(self, paths: int) -> None:
        """A fault that met nobody shows nothing."""
        if sum(count >= self._times for count in self.met.values()) < paths:
            raise TimeoutError(f"the fault met only {dict(self.met)}")
