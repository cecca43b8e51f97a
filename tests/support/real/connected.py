"""A client of a real API server that creates objects, reads them and waits until they are as a test expects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.client.port import Query
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Verb, Write
from tests.support.real.control_plane import ControlPlane


class Cluster:
    """The objects of the namespace `default` and those of no namespace, behind a real API server."""

    def __init__(self, api: KubeApi) -> None:
        self.api = api

    async def make(self, kind: kinds.Kind, body: Doc) -> None:
        namespace = "default" if kind.namespaced else ""
        await self.api.perform(Write(Verb.CREATE, kind, namespace, body["metadata"]["name"], body))

    async def read(self, kind: kinds.Kind, name: str) -> Doc:
        listed = await self.api.list(kind, Query(namespace="default" if kind.namespaced else ""))
        return next(doc for doc in listed.items if doc["metadata"]["name"] == name)

    async def until(self, kind: kinds.Kind, name: str, holds: Callable[[Doc], bool]) -> Doc:
        async with asyncio.timeout(180):
            while True:
                doc = await self.read(kind, name)
                if holds(doc):
                    return doc
                await asyncio.sleep(0.2)


@asynccontextmanager
async def connected(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """A Cluster over a connection of its own, which is closed at the end."""
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    try:
        yield Cluster(api)
    finally:
        await api.close()
