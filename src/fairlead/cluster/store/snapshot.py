"""A cluster's state in one file: what scheduling reads, as it was, to start another cluster from.

    {"fairlead": "snapshot", "version": 1, "savedAt": "2026-01-01T00:00:00Z", "redacted": false, ...}
    {"apiVersion": "v1", "kind": "Namespace", ...}
    {"apiVersion": "v1", "kind": "Node", ...}

The file is gzipped JSON, one document per line after a header. Objects keep their uids, statuses and times; only the
version is given anew when they are restored. Secrets, config maps, events and leases are never saved, nor is the record
of who wrote which field. Kinds that a cluster does not serve are left out; lists are taken one after the other, so an
object that changes meanwhile is seen as it is when its kind's turn comes.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.client.port import Query
from fairlead.cluster.store.snapshot_redaction import redacted
from fairlead.core.family import brought
from fairlead.core.model import kinds as k
from fairlead.core.model.times import timestamp
from fairlead.errors import FairleadError, Forbidden, MethodNotAllowed, NotFound, ScenarioError

if TYPE_CHECKING:
    from fairlead.client.port import ClusterApi
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

VERSION = 1
SIMULATED = "fairlead.io/simulated"
SAVED: tuple[Kind, ...] = (
    # What others refer to comes first.
    k.NAMESPACE,
    k.PRIORITY_CLASS,
    k.RUNTIME_CLASS,
    k.NODE,
    k.LIMIT_RANGE,
    k.RESOURCE_QUOTA,
    k.POD_DISRUPTION_BUDGET,
    k.STORAGE_CLASS,
    k.CSI_DRIVER,
    k.CSI_NODE,
    k.CSI_STORAGE_CAPACITY,
    k.VOLUME_ATTRIBUTES_CLASS,
    k.PERSISTENT_VOLUME,
    k.PERSISTENT_VOLUME_CLAIM,
    k.VOLUME_ATTACHMENT,
    k.DEVICE_CLASS,
    k.RESOURCE_SLICE,
    k.RESOURCE_CLAIM_TEMPLATE,
    k.RESOURCE_CLAIM,
    k.SERVICE,
    k.CRON_JOB,
    k.JOB,
    k.DEPLOYMENT,
    k.REPLICA_SET,
    k.REPLICATION_CONTROLLER,
    k.STATEFUL_SET,
    k.DAEMON_SET,
    k.CONTROLLER_REVISION,
    k.HORIZONTAL_POD_AUTOSCALER,
    # Of two versions the one that is served, the newer if both are.
    k.WORKLOAD_BETA,
    k.WORKLOAD,
    k.POD_GROUP_BETA,
    k.POD_GROUP,
    k.X_POD_GROUP,
    *(kind for saved in brought("saved") for kind in saved),
    k.POD,
)
"""Kinds that are saved, in this order."""
_PAGE = 500


@dataclass(frozen=True, slots=True)
class RedactionOptions:
    """What to take out before saving."""

    private: bool = False
    images: bool = False

    def apply(self, doc: Doc) -> Doc:
        return redacted(doc, images=self.images) if self.private or self.images else doc


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file that was read: its header and its documents, in the order in which they can be restored."""

    header: dict[str, Any]
    documents: list[Doc] = field(repr=False)

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(doc["kind"] for doc in self.documents))


async def collect(api: ClusterApi, redaction: RedactionOptions) -> list[Doc]:
    """All that is worth saving of a cluster. Kinds that it does not serve, or does not let us see, are skipped."""
    documents: list[Doc] = []
    read: set[Kind] = set()
    for kind in SAVED:
        if kind.storage in read:
            continue
        try:
            async for doc in _all(api, kind):
                documents.append(redaction.apply(_stripped(kind, doc)))  # noqa: PERF401
            read.add(kind.storage)
        except (NotFound, MethodNotAllowed):
            continue
        except Forbidden as error:
            raise FairleadError(f"{kind.resource} cannot be read: {error.message}") from error
    return documents


async def _all(api: ClusterApi, kind: Kind) -> Any:
    continue_ = ""
    while True:
        page = await api.list(kind, Query(limit=_PAGE, continue_=continue_))
        for doc in page.items:
            yield doc
        continue_ = page.continue_
        if not continue_:
            return


def _stripped(kind: Kind, doc: Doc) -> Doc:
    """The document with its type, and without what is of no use elsewhere."""
    metadata = {key: value for key, value in doc["metadata"].items() if key != "managedFields"}
    owners = [one for one in metadata.get("ownerReferences") or () if not _is_left_behind(one)]
    if "ownerReferences" in metadata:
        metadata["ownerReferences"] = owners
        if not owners:
            del metadata["ownerReferences"]
    return {**doc, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def _is_left_behind(owner: Doc) -> bool:
    """Whether an owner is of a kind that is not saved: its dependents would be taken for orphans and go."""
    is_it = [kind for kind in k.served_kinds() if (kind.api_version, kind.kind) == (owner["apiVersion"], owner["kind"])]
    return bool(is_it) and is_it[0].storage not in SAVED


def write_snapshot(path: Path, documents: Iterable[Doc], *, now: float, redaction: RedactionOptions) -> int:
    """Write a file that only its owner reads, all or nothing; returns how many documents are in it."""
    documents = list(documents)
    header = {
        "fairlead": "snapshot",
        "version": VERSION,
        "savedAt": timestamp(now),
        "objects": len(documents),
        "redacted": redaction.private,
        "imagesRedacted": redaction.images,
    }
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)  # also a link that somebody put there
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as raw, gzip.open(raw, "wb", compresslevel=6) as file:
            for line in (header, *documents):
                file.write(orjson.dumps(line) + b"\n")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise FairleadError(f"the snapshot {path} cannot be written: {error.strerror}") from error
    return len(documents)


def read_snapshot(path: Path) -> Snapshot:
    """Raises ScenarioError that says what is wrong with the file, and where."""
    lines = _lines(path)
    header = next(lines, None)
    if not isinstance(header, dict) or header.get("fairlead") != "snapshot":
        raise ScenarioError(f"{path} is not a snapshot: its first line says nothing of one")
    if header.get("version") != VERSION:
        raise ScenarioError(
            f"{path} is a snapshot of version {header.get('version')}, and this program reads version {VERSION}"
        )
    documents = [_document(path, number, line) for number, line in enumerate(lines, 2)]
    if header.get("objects") != len(documents):
        raise ScenarioError(f"{path} should hold {header.get('objects')} objects and holds {len(documents)}")
    return Snapshot(header, documents)


def _lines(path: Path) -> Iterator[Any]:
    try:
        with gzip.open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    raise ScenarioError(f"{path}:{number} is not JSON: {error}") from None
    except (EOFError, zlib.error) as error:
        raise ScenarioError(f"{path} is cut off or damaged") from error
    except gzip.BadGzipFile as error:
        raise ScenarioError(f"{path} is not a snapshot: it is not gzipped") from error
    except OSError as error:
        raise ScenarioError(f"the snapshot {path} cannot be read: {error.strerror}") from error


def _document(path: Path, number: int, line: Any) -> Doc:
    metadata = line.get("metadata") if isinstance(line, dict) else None
    if not isinstance(metadata, dict) or not all((line.get("apiVersion"), line.get("kind"), metadata.get("name"))):
        raise ScenarioError(f"{path}:{number} is not an object with apiVersion, kind and name")
    document: Doc = line
    return document


def restore(store: Store, snapshot: Snapshot) -> int:
    """Put all objects into a Store as they were; nodes become simulated ones. Returns how many nodes there are."""
    known = [(store.registry.by_kind(doc["apiVersion"], doc["kind"]), doc) for doc in snapshot.documents]
    unknown = {f"{doc['kind']} of {doc['apiVersion']}" for kind, doc in known if kind is None}
    if unknown:
        raise ScenarioError(f"the snapshot holds objects of kinds that are not served: {', '.join(sorted(unknown))}")
    with store.batch():
        for kind, doc in known:
            assert kind is not None
            store.restore(kind, _simulated(doc) if kind is k.NODE else doc)
    return sum(kind is k.NODE for kind, _ in known)


def _simulated(node: Doc) -> Doc:
    annotations = {**(node["metadata"].get("annotations") or {}), SIMULATED: "true"}
    return {**node, "metadata": {**node["metadata"], "annotations": annotations}}
