"""ApiUnderTest is one of the adapters that the contract holds for, with a namespace of its own for every test."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import Any

from fairlead.client.port import ClusterApi, Query
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.kinds import POD, Kind


class ApiUnderTest:
    """An API to try, a namespace to try it in, and short words for what tests do all the time."""

    def __init__(self, api: ClusterApi, forget: Callable[[], Awaitable[None]]) -> None:
        self.api = api
        self.forget = forget
        """Make the server forget all history up to now."""
        self.namespace = f"t-{uuid.uuid4().hex[:10]}"
        self._count = 0

    def name(self, stem: str = "x") -> str:
        """A name for a cluster-scoped object that no other test uses."""
        self._count += 1
        return f"{stem}-{self.namespace}-{self._count}"

    def _in(self, kind: Kind) -> str:
        return self.namespace if kind.namespaced else ""

    async def _perform(self, write: Write) -> dict[str, Any]:
        # A document that was handed out is nobody's to modify; tests like to.
        return deepcopy(await self.api.perform(write))

    async def create(self, kind: Kind, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        doc = {"apiVersion": kind.api_version, "kind": kind.kind} | body
        name = doc["metadata"].get("name", "")
        return await self._perform(Write(Verb.CREATE, kind, self._in(kind), name, doc, **more))

    async def get(self, kind: Kind, name: str, **more: Any) -> dict[str, Any]:
        return deepcopy(await self.api.get(kind, self._in(kind), name, **more))

    async def update(self, kind: Kind, doc: dict[str, Any], **more: Any) -> dict[str, Any]:
        return await self._perform(Write(Verb.UPDATE, kind, self._in(kind), doc["metadata"]["name"], doc, **more))

    async def patch(
        self, kind: Kind, name: str, patch: Any, type_: PatchType = PatchType.MERGE, **more: Any
    ) -> dict[str, Any]:
        return await self._perform(Write(Verb.PATCH, kind, self._in(kind), name, patch, patch_type=type_, **more))

    async def delete(self, kind: Kind, name: str, options: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        return await self._perform(Write(Verb.DELETE, kind, self._in(kind), name, options, **more))

    async def bind(self, pod: str, node: str, **metadata: Any) -> dict[str, Any]:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {
            "apiVersion": "v1", "kind": "Binding", "target": target,
            "metadata": {"name": pod, "namespace": self.namespace} | metadata,
        }  # fmt: skip
        return await self._perform(Write(Verb.CREATE, POD, self.namespace, pod, body, subresource="binding"))

    async def names(self, kind: Kind, **more: Any) -> list[str]:
        page = await self.api.list(kind, Query(namespace=self._in(kind), **more))
        return [item["metadata"]["name"] for item in page.items]

    async def events(self, count: int, kind: Kind, **more: Any) -> list[tuple[str, str]]:
        """The next so many events of a watch (bookmarks left out), as (type, name)."""
        seen: list[tuple[str, str]] = []
        async with asyncio.timeout(180):
            stream = self.api.watch(kind, Query(namespace=self._in(kind), **more), timeout=120)
            async for event in stream:
                if event.type != "BOOKMARK":
                    seen.append((event.type, event.doc["metadata"]["name"]))
                if len(seen) == count:
                    break
            await stream.aclose()  # type: ignore[attr-defined]
        return seen
