"""Overload, measured: the same load through one scheduler or the other, with the API slow or the client limited."""

from __future__ import annotations

import time
from collections import Counter

from soak.cluster import PODS, pod, priority_class
from soak.proxy import about
from soak.scenarios import Outcome
from soak.stage import Stage, staged


def behind_patches(scheduler: str) -> tuple[float, int]:
    """Seconds until a pod that fits is bound behind 600 that do not, and how many patches went before its bind."""
    with staged(scheduler, nodes=5) as stage:
        instance = stage.start(qps=20.0)
        stage.cluster.make_pods(["first"])
        stage.cluster.wait_bound(["first"], 60)
        stage.cluster.make_pods([f"large-{at}" for at in range(600)], cpu="100")
        time.sleep(1.0)
        stage.cluster.make_pods(["fits"])
        appeared = time.time()
        stage.cluster.wait_bound(["fits"], 120)
        seen = next(seen for seen in stage.validator.pods.values() if seen.name == "fits")
        between = [one for one in instance.proxy.log if appeared <= one.at <= seen.bound and one.method == "PATCH"]
        return max(0.0, seen.bound - appeared), len(between)


def slow_api(scheduler: str, *, seconds: float = 75.0, delay: float = 2.0) -> Outcome:
    with staged(scheduler, nodes=50, cpu="8500m") as stage:
        cluster = stage.cluster
        cluster.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority_class("high", 1000))
        instance = stage.start()
        low = [f"low-{at}" for at in range(180)]
        cluster.make_pods(low, cpu="2")
        cluster.wait_bound(low, 120)
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
            cluster.wait_bound([*high, *fits], 180)
        except TimeoutError as error:
            stage.say(str(error))
        recovery = time.time() - back
        time.sleep(3)
        return _measured(stage, scheduler, began, recovery, {*high, *fits})


def _measured(stage: Stage, scheduler: str, began: float, recovery: float, expected: set[str]) -> Outcome:
    log = [one for one in stage.instances[0].proxy.log if one.at >= began]
    patches = Counter(one.path for one in log if one.method == "PATCH" and about(one.path) == "pods/status")
    deletes = Counter(one.path for one in log if one.method == "DELETE" and about(one.path) == "pods")
    figures = {
        "patches per pod": sum(patches.values()) / 360, "deletes per victim": sum(deletes.values()) / len(deletes),
        "seconds to recover": recovery, "requests per pod": len(log) / 360,
    }  # fmt: skip
    return Outcome("an API of 2 s a request", stage.validator.verdict(expected=expected), figures)


def overload(scheduler: str) -> Outcome:
    """Both, as one outcome."""
    latency, _ = behind_patches(scheduler)
    outcome = slow_api(scheduler)
    outcome.figures = {"seconds to bind behind 600 patches": latency, **outcome.figures}
    return outcome
