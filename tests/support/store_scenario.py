"""StoreScenario is a Store without a server around it, for tests of its answers."""

from __future__ import annotations

import random
from typing import Any

from fairlead.client.port import Query
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import POD, Kind

START = 1_700_000_000.0


class StoreScenario:
    """A Store with a clock that a test moves, and short words for its writes."""

    def __init__(self, **options: Any) -> None:
        self.now = START
        self.store = Store(clock=lambda: self.now, rng=random.Random(7), **options)

    def create(self, kind: Kind, name: str = "", namespace: str = "default", **fields: Any) -> Doc:
        metadata = {"name": name} | fields.pop("metadata", {})
        body = {"metadata": metadata, **fields}
        return self.store.perform(Write(Verb.CREATE, kind, namespace if kind.namespaced else "", "", body=body))

    def pod(self, name: str, **metadata: Any) -> Doc:
        return self.create(POD, name, metadata=metadata, spec={"containers": [{"name": "c", "image": "x"}]})

    def patch(self, kind: Kind, name: str, body: Any, **more: Any) -> Doc:
        namespace = "default" if kind.namespaced else ""
        return self.store.perform(Write(Verb.PATCH, kind, namespace, name, body=body, **more))

    def delete(self, kind: Kind, name: str, **options: Any) -> Doc:
        namespace = "default" if kind.namespaced else ""
        return self.store.perform(Write(Verb.DELETE, kind, namespace, name, body=options or None))

    def bind(self, name: str, node: str = "n1", **metadata: Any) -> Doc:
        body = {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}
        return self.store.perform(Write(Verb.CREATE, POD, "default", name, body=body, subresource="binding"))

    def names(self, kind: Kind, **query: Any) -> list[str]:
        return [doc["metadata"]["name"] for doc in self.store.page(kind, Query(**query)).items]
