"""Overload, measured: the same load through fairlead and through kube-scheduler in one run, side by side.

Twice: a pod that fits arrives behind 600 that do not, while the client may send 20 requests a second; and an API server
that takes two seconds a request for 75 seconds. The bar is 1.2 times kube-scheduler's figure, and 50 ms for times.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from soak.cluster import PODS, pod, priority_class
from soak.proxy import about
from soak.scenarios import Outcome
from soak.stage import FAIRLEAD, KUBE, Stage, staged

if TYPE_CHECKING:
    from soak.validator import Verdict

FACTOR, SECONDS = 1.2, 0.05
BEHIND = "seconds to bind behind 600 patches"
SLOW = "seconds to bind with a slow API"
RECOVERY = "seconds to recover"
PATCHES, DELETES = "patches per pod", "deletes per victim"


@dataclass
class Measured:
    verdict: Verdict
    figures: dict[str, float] = field(default_factory=dict)


def behind_patches(scheduler: str, *, probes: int = 5) -> tuple[float, int]:
    """Of pods that fit and come behind 600 that do not: the median of the seconds until each is bound, and how many
    patches went out meanwhile."""
    with staged(scheduler, nodes=5, volcano=False) as stage:
        instance = stage.start(qps=20.0)
        stage.cluster.make_pods(["first"])
        stage.cluster.wait_bound(["first"], 240)
        stage.cluster.make_pods([f"large-{at}" for at in range(600)], cpu="100")
        took, patches = [], 0
        for at in range(probes):
            time.sleep(1.0)
            name, appeared = f"fits-{at}", time.time()
            stage.cluster.make_pods([name])
            stage.cluster.wait_bound([name], 600, pause=0.05)
            bound = stage.validator.bound_at(name)
            took.append(max(0.0, bound - appeared))
            patches += sum(1 for one in instance.proxy.log if one.method == "PATCH" and appeared <= one.at <= bound)
        return statistics.median(took), patches


def slow_api(scheduler: str, *, seconds: float = 75.0, delay: float = 2.0) -> Measured:
    """High pods that need victims, pods that fit, and pods that fit nowhere, while each request takes `delay`."""
    with staged(scheduler, nodes=50, cpu="8500m", volcano=False) as stage:
        cluster = stage.cluster
        cluster.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority_class("high", 1000))
        instance = stage.start()
        low = [f"low-{at}" for at in range(180)]
        cluster.make_pods(low, cpu="2")
        cluster.wait_bound(low, 240)
        instance.proxy.faults.delay = delay
        began = time.time()
        high = [f"high-{at}" for at in range(60)]
        fits = [f"fits-{at}" for at in range(100)]
        large = [f"large-{at}" for at in range(200)]
        cluster.many([("POST", PODS, pod(name, cpu="2", priority="high")) for name in high])
        cluster.many([("POST", PODS, pod(name, cpu="100")) for name in large])
        cluster.make_pods(fits, cpu="100m")
        while time.time() - began < seconds:
            time.sleep(0.5)
        instance.proxy.faults.delay = 0.0
        back = time.time()
        try:
            cluster.wait_bound([*high, *fits], 180, pause=0.1)
        except TimeoutError as error:
            stage.say(str(error))
        recovery = time.time() - back
        time.sleep(3)
        verdict = stage.validator.verdict(expected=[*high, *fits])
        return Measured(verdict, {**_requests(stage, began), SLOW: _latency(stage, fits), RECOVERY: recovery})


def _requests(stage: Stage, began: float) -> dict[str, float]:
    log = [one for one in stage.instances[0].proxy.log if one.at >= began]
    patches = sum(1 for one in log if one.method == "PATCH" and about(one.path) == "pods/status")
    deletes = Counter(one.path for one in log if one.method == "DELETE" and about(one.path) == "pods")
    return {PATCHES: patches / 360, DELETES: deletes.total() / max(1, len(deletes))}


def _latency(stage: Stage, names: list[str]) -> float:
    wanted = set(names)
    return statistics.mean(
        seen.bound - seen.appeared for seen in stage.validator.pods.values() if seen.name in wanted and seen.bound
    )


def overload(scheduler: str) -> Outcome:
    """Both, with both schedulers one after the other, whichever is chosen: a comparison needs two."""
    measured: dict[str, Measured] = {}
    for name in (KUBE, FAIRLEAD):
        behind, _ = behind_patches(name)
        measured[name] = slow_api(name)
        measured[name].figures[BEHIND] = behind
    ours, theirs = measured[FAIRLEAD].figures, measured[KUBE].figures
    verdict = measured[FAIRLEAD].verdict
    print(f"  {'overload':36}{'fairlead':>10}{'kube-scheduler':>16}{'bar':>8}", flush=True)
    for name in (BEHIND, SLOW, PATCHES, DELETES, RECOVERY):
        bar = FACTOR * theirs[name] + (SECONDS if name.startswith("seconds") else 0.0)
        holds = ours[name] <= bar
        print(
            f"  {name:36}{ours[name]:10.3f}{theirs[name]:16.3f}{bar:8.3f}  {'holds' if holds else 'MISSED'}", flush=True
        )
        if not holds:
            verdict.too_much.append(f"{name}: {ours[name]:.3f}, and {bar:.3f} is the bar")
    return Outcome("overload", verdict, ours)
