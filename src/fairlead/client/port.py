"""ClusterApi: the port through which a cluster is read and changed, and the only way to the outside world.

It has four methods (get, list, watch, perform) and two adapters: `KubeApi` speaks HTTP to a real API server or to our
own, `StoreApi` is the async face of the embedded Store. Both pass the same contract tests, so that no code above the
port knows which of them it uses.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, Watch, Write
    from fairlead.core.model.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which objects of a kind a list or a watch is about, in the words of the API's parameters. An empty value means
    that the parameter is not given. Only lists have the last three."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_: str = ""

    @classmethod
    def of(cls, watch: Watch) -> Query:
        """What a controller's watch requests."""
        return cls(namespace=watch.namespace, label_selector=watch.label_selector, field_selector=watch.field_selector)


EVERYTHING = Query()


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to a list: `continue_` is empty on the last page. Items carry no apiVersion and kind of their own
    when the server leaves them out (as the real one does); adapters put them back."""

    items: list[Doc]
    resource_version: str
    continue_: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch. A BOOKMARK's doc has only metadata.resourceVersion (and annotations)."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    doc: Doc


class ClusterApi(Protocol):
    """The port. Every method raises an ApiError of errors.py; a watch raises Gone when it must be listed anew."""

    async def get(self, kind: Kind, namespace: str, name: str, *, subresource: str = "") -> Doc: ...

    async def list(self, kind: Kind, query: Query = EVERYTHING) -> Page: ...

    def watch(
        self,
        kind: Kind,
        query: Query = EVERYTHING,
        *,
        bookmarks: bool = True,
        send_initial_events: bool = False,
        timeout: float | None = None,
    ) -> AsyncIterator[WatchEvent]: ...

    async def perform(self, write: Write) -> Doc: ...

    async def close(self) -> None: ...
