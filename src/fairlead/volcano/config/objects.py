"""Queues, groups and nodes for `fairlead config check`: from manifests, from a snapshot, or from a cluster.

A manifest is YAML or JSON with any number of objects; a directory stands for the manifests in it. Kinds that the check
does not look at are passed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fairlead.config.source import read_text
from fairlead.config.yaml_text import load_all
from fairlead.core.model import kinds
from fairlead.core.model.documents import read_units
from fairlead.core.model.group import PodGroup, compile_group
from fairlead.errors import ConfigError, NotFound
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.records.queues import Queue, compile_queue

_MANIFESTS = (".yaml", ".yml", ".json")
_SNAPSHOT = b"\x1f\x8b"


@dataclass(slots=True)
class Objects:
    """`total` is what the nodes can allocate together; None if there are none to be seen."""

    queues: list[Queue] = field(default_factory=list)
    groups: list[PodGroup] = field(default_factory=list)
    total: dict[str, int] | None = None

    def add(self, document: Mapping[str, Any]) -> None:
        kind = (str(document.get("apiVersion") or ""), str(document.get("kind") or ""))
        if kind[1] == "Queue":
            self.queues.append(compile_queue(document))
        elif kind == (VC_POD_GROUP.api_version, VC_POD_GROUP.kind):
            self.groups.append(compile_group(document))
        elif kind[1] == "Node":
            self.total = self.total or {}
            for name, amount in read_units((document.get("status") or {}).get("allocatable"), "allocatable").items():
                self.total[name] = self.total.get(name, 0) + amount


def objects_in(paths: Iterable[str]) -> Objects:
    """What is in some files. Raises ConfigError if there is no Queue in any."""
    found, paths = Objects(), list(paths)
    for path in paths:
        for file in _files(path):
            for document in _documents(file):
                found.add(document)
    if not found.queues:
        raise ConfigError("has no Queue in it", file=", ".join(paths))
    return found


def objects_of_cluster(kubeconfig: str | None, context: str | None) -> Objects:
    """What a cluster has now."""
    return asyncio.run(_listed(kubeconfig, context))


async def _listed(kubeconfig: str | None, context: str | None) -> Objects:
    from fairlead.client.client import KubeApi
    from fairlead.client.credentials import connect

    found = Objects()
    api = KubeApi(connect(kubeconfig, context))
    try:
        for kind in (VC_QUEUE, VC_POD_GROUP, kinds.NODE):
            for document in (await api.list(kind)).items:
                found.add({**document, "apiVersion": kind.api_version, "kind": kind.kind})
    except NotFound as error:
        raise ConfigError("this cluster does not know Volcano's queues and groups") from error
    finally:
        await api.close()
    return found


def _files(path: str) -> Sequence[str]:
    directory = Path(path)
    if not directory.is_dir():
        return [path]
    return sorted(str(file) for file in directory.iterdir() if file.suffix in _MANIFESTS)


def _documents(path: str) -> Iterator[Mapping[str, Any]]:
    if _is_snapshot(path):
        from fairlead.cluster.store.snapshot import read_snapshot

        yield from read_snapshot(Path(path)).documents
        return
    try:
        found = load_all(read_text(path))
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"yaml: {error}", file=path) from None
    for document in found:
        for one in document.get("items") or [document] if isinstance(document, dict) else ():
            if isinstance(one, dict):
                yield one


def _is_snapshot(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_SNAPSHOT)) == _SNAPSHOT
    except OSError:
        return False
