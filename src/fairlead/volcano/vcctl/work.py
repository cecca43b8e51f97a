"""What every command of vcctl has at hand: its flags, the cluster, and where to print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from fairlead.client.port import Query
from fairlead.config.yaml_text import load_all
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.client.port import ClusterApi
    from fairlead.core.model.kinds import Kind


class VcFault(FairleadError):
    """Something that vcctl says no to by itself."""


@dataclass(frozen=True, slots=True)
class VcWork:
    """`kind` is the first word of the command."""

    kind: str
    values: Mapping[str, Any]
    api: ClusterApi
    out: Callable[[str], None]
    now: Callable[[], float]

    @property
    def name(self) -> str:
        return str(self.values.get("name") or "")

    @property
    def namespace(self) -> str:
        return str(self.values.get("namespace") or "default")

    async def listed(self, kind: Kind, namespace: str) -> list[Doc]:
        """All objects of a kind by namespace and name."""
        page = await self.api.list(kind, Query(namespace=namespace))
        return sorted(page.items, key=lambda doc: (doc["metadata"].get("namespace", ""), doc["metadata"]["name"]))

    async def create(self, kind: Kind, doc: Doc) -> Doc:
        metadata = doc["metadata"]
        write = Write(Verb.CREATE, kind, metadata.get("namespace", ""), metadata.get("name", ""), body=doc)
        return await self.api.perform(write)

    async def remove(self, kind: Kind, namespace: str, name: str) -> None:
        await self.api.perform(Write(Verb.DELETE, kind, namespace, name))

    async def command(self, kind: Kind, doc: Doc, action: str, namespace: str) -> None:
        """Ask a controller to do something to an object."""
        from fairlead.cluster.controllers.writes import owner_reference
        from fairlead.volcano.kinds import VC_COMMAND

        name = doc["metadata"]["name"]
        body = {
            "apiVersion": VC_COMMAND.api_version,
            "kind": VC_COMMAND.kind,
            "metadata": {"namespace": namespace, "generateName": f"{name}-{action.lower()}-"},
            "action": action,
            "target": owner_reference(kind, doc),
        }
        await self.api.perform(Write(Verb.CREATE, VC_COMMAND, namespace, "", body=body))


def read_yaml(path: str) -> list[Doc]:
    """The documents of a file, in the words of Go if it is not there."""
    try:
        text = Path(path).read_text() if path else None
    except OSError as error:
        raise VcFault(f"open {path}: {(error.strerror or str(error)).lower()}") from error
    if text is None:
        raise VcFault("open : no such file or directory")
    try:
        return [doc for doc in load_all(text) if doc]
    except (yaml.YAMLError, ValueError) as error:
        raise VcFault(f"error converting YAML to JSON: {error}") from error


def columns(rows: list[list[str]], spacing: int, *, header_spacing: int | None = None) -> list[str]:
    """Rows with every column as wide as its widest cell and some room; `header_spacing` is the header's own room."""
    widths = []
    for at, title in enumerate(rows[0]):
        cells = max((len(row[at]) for row in rows[1:]), default=0) + spacing
        widths.append(max(len(title) + (spacing if header_spacing is None else header_spacing), cells))
    return ["".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
