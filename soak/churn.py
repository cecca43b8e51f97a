"""A steady stream of pods that come and go, for a long time and with faults: does memory grow, what does a pod cost?

kube-scheduler gets a tenth of the time first, with the same pods and the same faults: its requests per pod are the bar.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque

from soak.cluster import PODS, pod
from soak.scenarios import Outcome
from soak.stage import FAIRLEAD, KUBE, staged

RATE = 100
"""Pods a second."""
MORE_MEMORY = 10.0
"""Megabytes by which memory may grow after a third of the time."""


REQUESTS = "requests per pod"


def churn(scheduler: str, *, minutes: float = 30.0, rate: int = RATE) -> Outcome:
    """The stream through one scheduler; for fairlead with kube-scheduler's requests beside its own."""
    if scheduler != FAIRLEAD:
        return stream(scheduler, minutes=minutes, rate=rate)
    bar = stream(KUBE, minutes=max(0.5, minutes / 10), rate=rate).figures[REQUESTS]
    outcome = stream(scheduler, minutes=minutes, rate=rate)
    outcome.figures["kube-scheduler's"] = bar
    if outcome.figures[REQUESTS] > bar:
        outcome.verdict.too_much.append(f"{REQUESTS}: {outcome.figures[REQUESTS]:.2f}, and {bar:.2f} is the bar")
    return outcome


def stream(scheduler: str, *, minutes: float, rate: int) -> Outcome:
    rng = random.Random(1)
    with staged(scheduler, nodes=100, volcano=False) as stage:
        instance = stage.start()
        stage.cluster.make_pods(["first"])
        stage.cluster.wait_bound(["first"], 240)
        began, alive, made, ticks = time.monotonic(), deque[str](), 0, 0
        memory: list[tuple[float, float]] = []
        while time.monotonic() - began < 60 * minutes:
            ticks += 1
            names = [f"c-{made + at}" for at in range(rate)]
            made += rate
            going = [alive.popleft() for _ in range(max(0, len(alive) - 20 * rate))]
            calls = [("POST", PODS, pod(name, cpu="10m")) for name in names]
            calls += [("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0}) for name in going]
            stage.cluster.many(calls, at_once=8)
            alive.extend(names)
            faults = instance.proxy.faults
            faults.error_share = rng.choice((0.0, 0.0, 0.05))
            faults.lose_share = rng.choice((0.0, 0.0, 0.05))
            if rng.random() < 0.1:
                threading.Thread(target=instance.proxy.cut_all).start()
            memory.append((time.monotonic() - began, instance.rss()))
            time.sleep(max(0.0, began + ticks - time.monotonic()))  # a second that took longer is made up for
        lasted = time.monotonic() - began
        faults.error_share = faults.lose_share = 0.0
        try:
            stage.cluster.wait_bound(list(alive), 240)
        except TimeoutError as error:
            stage.say(str(error))
        settled = [megabytes for at, megabytes in memory if at >= memory[-1][0] / 3]
        requests = len(instance.proxy.log)
        figures = {
            "pods": float(made),
            "pods per second": made / lasted,
            REQUESTS: requests / made,
            "MB after a third": settled[0],
            "MB at the end": memory[-1][1],
            "CPU ms per pod": 1000 * instance.cpu() / made,
        }
        verdict = stage.validator.verdict(expected=alive)
        if memory[-1][1] - settled[0] > MORE_MEMORY:
            verdict.too_much.append(f"{memory[-1][1] - settled[0]:.1f} MB more than after a third of the time")
        return Outcome("churn", verdict, figures)
