"""How a Store starts: with what its journal holds, and with the objects that every cluster has."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fairlead.cluster.custom.structural import conformed
from fairlead.cluster.store.conversion import convert
from fairlead.cluster.store.journal import RESTART_GAP
from fairlead.cluster.store.objects import Key, Record, encode
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.priorities import CLUSTER_CRITICAL, SYSTEM_PRIORITIES

if TYPE_CHECKING:
    from fairlead.cluster.custom.catalog import Catalog
    from fairlead.cluster.store.journal import Journal
    from fairlead.core.model.kinds import Kind, Registry

log = logging.getLogger("fairlead.journal")

FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


def load(journal: Journal, registry: Registry, catalog: Catalog, put: Callable[[Kind, Key, Record], None]) -> int:
    """Hand everything that the journal holds to `put`; returns the version to go on from. What belongs to no kind is
    set aside in the journal: one wrong row must not keep a whole cluster from starting."""
    by_resource = {f"{kind.group}/{kind.version}/{kind.plural}": (kind, kind.storage) for kind in registry}
    defined: list[tuple[str, Record]] = []  # a definition may come after its objects
    for number, resource, namespace, name, raw in journal.load():
        record = Record(namespace, name, number, raw)
        if (kinds_of := by_resource.get(resource)) is None:
            defined.append((resource, record))
            continue
        kind, storage = kinds_of
        if kind is not storage:  # it was kept in another version once
            record = _with_document(record, convert(record.doc, kind, storage))
        put(storage, (namespace, name), record)
    unknown: dict[str, list[int]] = {}
    for resource, record in defined:
        group, plural = resource.split("/")[0], resource.rpartition("/")[2]
        stored = catalog.stored_kind(f"{plural}.{group}")
        if stored is None:
            unknown.setdefault(resource, []).append(record.version)
        else:
            put(stored, record.key, conformed_record(stored, record))
    for resource, versions in unknown.items():
        text = "the journal holds %d objects of %s, which no definition serves: they are set aside, and not served"
        log.warning(text, len(versions), resource)
        journal.set_aside(versions, "no definition serves its resource")
    version = journal.resource_version
    return version + RESTART_GAP if version else 0


def conformed_record(kind: Kind, record: Record) -> Record:
    """The record as the kind's present schema has it."""
    doc = conformed(kind, record.doc)
    return record if doc == record.doc else _with_document(record, doc)


def _with_document(record: Record, doc: Doc) -> Record:
    return Record(record.namespace, record.name, record.version, encode(doc))


def first_objects() -> Iterator[Write]:
    """What every cluster has from the start, each to be created unless it is there."""
    for name in FIRST_NAMESPACES:
        yield Write(Verb.CREATE, kinds.NAMESPACE, "", name, body={})
        yield Write(Verb.CREATE, kinds.SERVICE_ACCOUNT, name, "default", body={})
    for name, value in SYSTEM_PRIORITIES.items():
        description = "Used for system critical pods that must "
        description += (
            "run in the cluster, but can be moved to another node if necessary."
            if name == CLUSTER_CRITICAL
            else "not be moved from their current node."
        )
        yield Write(Verb.CREATE, kinds.PRIORITY_CLASS, "", name, body={"value": value, "description": description})
