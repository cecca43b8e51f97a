"""The smallest scheduler there is: pods go to the ready nodes in turn. For tests of everything but scheduling."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.core.model.flow import Change, DocView, Happened, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import NODE, POD


class TurnBinder:
    name = "turn-binder"
    watches: Sequence[Watch] = (Watch(NODE), Watch(POD))

    def __init__(self, view: DocView) -> None:
        self._nodes: list[str] = []
        self._waiting: dict[tuple[str, str], None] = {}
        self._turn = 0

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        for change in changes:
            if change.kind is NODE:
                self._notice_node(change)
            else:
                self._notice_pod(change)
        writes = [self._bind(key) for key in self._waiting] if self._nodes else []
        self._waiting = {} if self._nodes else self._waiting
        return writes

    def wake_at(self) -> float | None:
        return None

    def _notice_node(self, change: Change) -> None:
        name = change.doc["metadata"]["name"]
        usable = change.happened is not Happened.DELETED and not change.doc["spec"].get("taints")
        if usable != (name in self._nodes):
            self._nodes = sorted({*self._nodes, name} if usable else {*self._nodes} - {name})

    def _notice_pod(self, change: Change) -> None:
        metadata, spec = change.doc["metadata"], change.doc["spec"]
        key = (metadata["namespace"], metadata["name"])
        self._waiting.pop(key, None)
        gone = change.happened is Happened.DELETED or metadata.get("deletionTimestamp")
        if not gone and not spec.get("nodeName"):
            self._waiting[key] = None

    def _bind(self, key: tuple[str, str]) -> Write:
        self._turn += 1
        target = {"apiVersion": "v1", "kind": "Node", "name": self._nodes[self._turn % len(self._nodes)]}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": key[1]}, "target": target}
        return Write(Verb.CREATE, POD, *key, body=body, subresource="binding")
