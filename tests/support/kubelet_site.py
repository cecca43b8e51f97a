"""A simulated kubelet and its node, in a world of documents."""

from __future__ import annotations

from random import Random
from typing import Any

from fairlead.cluster.kubelets.kubelet import Kubelet
from fairlead.core.model.flow import Change, Doc, Happened, Reply, Verb, Write
from fairlead.core.model.kinds import NODE, POD, Kind
from fairlead.testing.builders import PodBuilder, node
from tests.support.controllers import Documents, patched, said


class Site:
    """A kubelet with one node in a world that obeys every write at once."""

    def __init__(self, **options: Any) -> None:
        self.world = Documents()
        self.kubelet = Kubelet(self.world, rng=Random(1), renew_interval=None, **options)
        self.put(NODE, node("n").doc(), at=0.0)

    def put(self, kind: Kind, doc: Doc, *, at: float) -> list[Write]:
        return self.obey(self.kubelet.step(at, [self.world.put(kind, doc)], []), at)

    def put_together(self, *builders: PodBuilder, at: float) -> None:
        """Pods that the kubelet sees bound in one step."""
        changes = [self.world.put(POD, each.on("n").doc()) for each in builders]
        self.obey(self.kubelet.step(at, changes, []), at)

    def remove(self, name: str, *, at: float) -> None:
        self.obey(self.kubelet.step(at, [self.world.remove(POD, "default", name)], []), at)

    def restart(self, *, at: float) -> None:
        """Another kubelet in the place of this one, which sees all that is there."""
        self.kubelet = Kubelet(self.world, rng=Random(2), renew_interval=None)
        seen = [Change(Happened.ADDED, kind, doc) for kind in (NODE, POD) for doc in self.world.list(kind)]
        self.obey(self.kubelet.step(at, seen, []), at)

    def bind(self, builder: PodBuilder, *, at: float = 0.0) -> list[Write]:
        return self.put(POD, builder.on("n").doc(), at=at)

    def step(self, at: float) -> list[Write]:
        return self.obey(self.kubelet.step(at, [], []), at)

    def obey(self, writes: list[Write], at: float) -> list[Write]:
        done = []
        while writes := said(writes):
            done += writes
            changes, replies = [], []
            for write in writes:
                doc = self.world.get(write.kind, write.namespace, write.name)
                assert doc is not None
                if write.verb is Verb.DELETE:
                    changes.append(self.world.remove(write.kind, write.namespace, write.name))
                else:
                    changes.append(self.world.put(write.kind, patched(doc, write)))
                replies.append(Reply(write, changes[-1].doc))
            writes = self.kubelet.step(at, changes, replies)
        return done

    def status(self, name: str = "p") -> Doc:
        doc = self.world.get(POD, "default", name)
        assert doc is not None
        status: Doc = doc["status"]
        return status

    def conditions(self, name: str = "p") -> dict[str, str]:
        return {one["type"]: one["status"] for one in self.status(name)["conditions"]}
