"""Shared is a cluster with several schedulers with the Volcano profile, each with its own part of the nodes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.testing.builders import Builder, pod, podgroup
from fairlead.testing.harness import Harness
from fairlead.volcano.config.build import profile_of_volcano
from fairlead.volcano.config.options import VolcanoOptions
from fairlead.volcano.config.reading import load_volcano_config
from fairlead.volcano.kinds import VC_NODE_SHARD
from fairlead.volcano.queues.controller import FirstQueues
from fairlead.volcano.rounds.partition import Partition
from tests.support.documents import GROUP
from tests.support.volcano import conf

PLAIN = conf("enqueue, allocate, backfill", "priority; gang", "predicates; proportion; nodeorder")


class Shared(Harness):
    """A cluster with a scheduler per partition."""

    def __init__(
        self, *territories: Partition, text: str = PLAIN, nodes: Collection[Builder] = (), **more: Any
    ) -> None:
        self.schedulers = [_scheduler(text, partition, at) for at, partition in enumerate(territories)]
        self._factories = [_given(scheduler) for scheduler in self.schedulers]
        super().__init__(nodes=list(nodes), schedulers=self._factories, controllers=[FirstQueues], **more)
        self.run(1)

    def gang(self, name: str, members: int, cpu: str = "2", *, minimum: int | None = None, **of: str) -> None:
        group = podgroup(name, members if minimum is None else minimum).in_queue(of.get("queue", "default"))
        if "priority" in of:
            group = group.having(priorityClassName=of["priority"])
        stored = self.apply(group)
        for at in range(members):
            member = pod(f"{name}-w-{at}").annotated({GROUP: name}).scheduled_by("volcano").owned_by(stored)
            member = member.of_priority(of["priority"]) if "priority" in of else member
            self.apply(member.asks(cpu=cpu) if cpu else member)

    def nodes_of(self, prefix: str) -> list[str]:
        """Where the pods are whose names begin like that."""
        return sorted(name for key, name in self.bindings().items() if key.startswith(prefix))

    def shard(self, name: str) -> Doc:
        found = self.get(VC_NODE_SHARD, name)
        assert found is not None
        return found

    def assign(self, name: str, *nodes: str) -> None:
        kind = VC_NODE_SHARD
        spec = {"nodesDesired": list(nodes)}
        self.apply({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec})

    def used(self, name: str) -> list[str]:
        return list((self.shard(name).get("status") or {}).get("nodesInUse") or ())

    def said(self, name: str) -> str:
        """Why a pod waits."""
        found = self.get(kinds.POD, name)
        assert found is not None
        return next((c["message"] for c in found["status"]["conditions"] if c["type"] == "PodScheduled"), "")


def _scheduler(text: str, partition: Partition, at: int) -> Scheduler:
    profile = profile_of_volcano(load_volcano_config(text), VolcanoOptions(partition=partition))
    return Scheduler([profile], Options(name=f"scheduler-{at}", seed=at + 1))


def _given(scheduler: Scheduler) -> Any:
    return lambda _: scheduler
