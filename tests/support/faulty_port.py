"""Faults at the port, on virtual time: a write is refused, its answer is lost, or it hangs; a watch is late.

    faults = Faults()
    faults.lose_answer(binds(), times=1)
    world = FaultyWorld(faults, nodes=2, watch_delay=0.5)

Only writes of schedulers are hit: kubelets and controllers are not what is being tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from fairlead.assembly.presets import first_profile
from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.core.model import kinds
from fairlead.core.model.flow import Controller, Doc, Verb, Write
from fairlead.core.model.quantity import parse_quantity, to_units
from fairlead.core.model.quota import has_ended
from fairlead.errors import ApiError, InternalError, Unreachable
from fairlead.runtime.virtual import Latencies
from fairlead.testing.builders import Builder, PodBuilder, pod, podgroup
from fairlead.testing.harness import Harness
from fairlead.volcano.config.build import profile_of_volcano
from fairlead.volcano.config.options import VolcanoOptions
from fairlead.volcano.config.reading import load_volcano_config
from fairlead.volcano.queues.controller import FirstQueues

Chosen = Callable[[Write], bool]
MODES = ("kube", "volcano")

VOLCANO = """
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins:
  - {name: priority}
  - {name: gang}
  - {name: conformance}
- plugins:
  - {name: drf}
  - {name: predicates}
  - {name: proportion}
  - {name: nodeorder}
"""


def binds(prefix: str = "") -> Chosen:
    return lambda write: write.subresource == "binding" and write.name.startswith(prefix)


def deletes(prefix: str = "") -> Chosen:
    return lambda write: write.verb is Verb.DELETE and write.kind is kinds.POD and write.name.startswith(prefix)


def statuses(prefix: str = "") -> Chosen:
    return lambda write: write.verb is Verb.PATCH and write.subresource == "status" and write.name.startswith(prefix)


@dataclass
class _Rule:
    chosen: Chosen
    error: ApiError
    performed: bool
    times: int
    after: int


class Faults:
    """Rules in their order; the first that wants a write has it. `sent` is every write, whatever became of it."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self.sent: list[Write] = []
        self.hit = 0
        self.chance: Callable[[Write], _Rule | None] = lambda write: None

    def lose_answer(self, chosen: Chosen, *, times: int = 1, after: int = 0) -> None:
        """The work is done, and nobody hears of it."""
        self._rules.append(_Rule(chosen, Unreachable("the answer was lost"), True, times, after))

    def refuse(self, chosen: Chosen, *, times: int = 1, after: int = 0, error: ApiError | None = None) -> None:
        """The work is not done; `after` lets so many of the chosen through first."""
        self._rules.append(_Rule(chosen, error or InternalError("no"), False, times, after))

    def at_random(self, rng: Random, share: float) -> None:
        """A share of all writes is refused, lost after the work or lost before it, at random."""

        def chance(write: Write) -> _Rule | None:
            if rng.random() >= share:
                return None
            error = rng.choice((Unreachable("lost"), Unreachable("lost"), InternalError("no")))
            return _Rule(lambda _: True, error, isinstance(error, Unreachable) and rng.random() < 0.5, 1, 0)

        self.chance = chance

    def like_a_bad_line(self, rng: Random, *, lose: float, fail: float) -> None:
        """Of all writes a share fails and is not done, and of the others a share is done and its answer lost."""

        def chance(write: Write) -> _Rule | None:
            if rng.random() < fail:
                return _Rule(lambda _: True, InternalError("no"), False, 1, 0)
            if rng.random() < lose:
                return _Rule(lambda _: True, Unreachable("lost"), True, 1, 0)
            return None

        self.chance = chance

    def stop(self) -> None:
        self._rules.clear()
        self.chance = lambda write: None

    def perform(self, store: Any, controller: Controller, write: Write) -> Doc:
        if not isinstance(controller, Scheduler):
            return store.perform(write)  # type: ignore[no-any-return]
        self.sent.append(write)
        rule = self._rule_for(write)
        if rule is None:
            return store.perform(write)  # type: ignore[no-any-return]
        self.hit += 1
        if rule.performed:
            store.perform(write)
        raise rule.error

    def _rule_for(self, write: Write) -> _Rule | None:
        for rule in self._rules:
            if rule.times and rule.chosen(write):
                if rule.after:
                    rule.after -= 1
                    return None
                rule.times -= 1
                return rule
        return self.chance(write)

    def count(self, chosen: Chosen) -> Counter[str]:
        """How often each object was written."""
        return Counter(write.name for write in self.sent if chosen(write))


class FaultyWorld(Harness):
    """A cluster with one scheduler of both scheduling modes, whose writes go through `faults`."""

    def __init__(
        self,
        faults: Faults,
        nodes: int | Sequence[Builder],
        *,
        watch_delay: float = 0.0,
        seed: int = 1,
        latencies: Latencies | None = None,
        **more: Any,
    ) -> None:
        self.faults, self._seed = faults, seed
        self.scheduler = self._new_scheduler()
        if watch_delay:
            latencies = Latencies(watch=lambda rng: watch_delay)
        super().__init__(
            nodes=nodes,
            schedulers=[lambda _: self.scheduler],
            controllers=[FirstQueues],
            seed=seed,
            latencies=latencies,
            perform=self._perform,
            **more,
        )
        self.run(2)

    def _perform(self, controller: Controller, write: Write) -> Doc:
        return self.faults.perform(self.store, controller, write)

    def _new_scheduler(self) -> Scheduler:
        self._seed += 1
        volcano = profile_of_volcano(load_volcano_config(VOLCANO), VolcanoOptions())
        return Scheduler([first_profile(), volcano], Options(seed=self._seed))

    def restart(self) -> None:
        """Kill the scheduler and start another, which knows nothing."""
        self.runtime.remove(self.scheduler)
        self.scheduler = self._new_scheduler()
        self.runtime.add(self.scheduler)

    # ---- work ----

    def one(self, name: str, mode: str = "kube", *, cpu: str = "1") -> PodBuilder:
        """A pod that stands alone."""
        built = pod(name).asks(cpu=cpu)
        return built.scheduled_by("volcano") if mode == "volcano" else built

    def gang(self, name: str, minimum: int, mode: str = "kube", *, cpu: str = "1", members: int = 0) -> None:
        self.apply(podgroup(name, minimum))
        for at in range(members or minimum):
            self.apply(self.one(f"{name}-{at}", mode, cpu=cpu).in_group(name))

    # ---- what must hold, recomputed from the Store alone ----

    def check(self) -> None:
        self.scheduler.cluster.check()
        self.scheduler.backlog.check()
        assert not self.scheduler.bindings.ended(), "a binding has ended, and its place was not given back"
        raised = dict(self.scheduler.guard.quarantine.raised)
        assert not raised, (raised, list(self.scheduler.backlog.complaints))
        assert not self.scheduler.guard.audit.found, list(self.scheduler.backlog.complaints)
        assert not self.overcommitted()

    def room(self, without: Collection[str] = ()) -> dict[str, int]:
        """Milli-CPU that each node has left, counted from the Store's pods, or from all of them but some."""
        room = {doc["metadata"]["name"]: _milli(doc["status"]["allocatable"]["cpu"]) for doc in self.list(kinds.NODE)}
        for doc in self.list(kinds.POD):
            if doc["metadata"]["name"] in without or has_ended(doc):
                continue
            if (node := doc["spec"].get("nodeName")) in room:
                for container in doc["spec"]["containers"]:
                    room[node] -= _milli(container.get("resources", {}).get("requests", {}).get("cpu", "0"))
        return room

    def overcommitted(self) -> dict[str, int]:
        return {name: left for name, left in self.room().items() if left < 0}

    def waiting(self) -> list[str]:
        pods = self.list(kinds.POD)
        return sorted(doc["metadata"]["name"] for doc in pods if not doc["spec"].get("nodeName") and not has_ended(doc))


def _milli(text: str) -> int:
    return to_units("cpu", parse_quantity(text))
