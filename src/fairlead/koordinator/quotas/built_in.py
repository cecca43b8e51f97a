"""BuiltInQuotas: makes the objects of the root, system and default quota, so that people see what is used of them.

The quotas themselves are there without objects. The objects are made when an embedded cluster starts, with their
namespace; admission refuses to delete them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import create
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.kinds import NAMESPACE
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA
from fairlead.koordinator.records.quotas import DEFAULT, PREFIX, ROOT, SYSTEM

QUOTA_NAMESPACE = "koordinator-system"
_MOST = str((2**63 - 1) // 5)
_SPECS: dict[str, Doc] = {
    DEFAULT: {"max": {"cpu": _MOST, "memory": _MOST}},
    SYSTEM: {"max": {"cpu": _MOST, "memory": _MOST}},
    ROOT: {},
}
_ROOT_LABELS = {PREFIX + "is-parent": "true", PREFIX + "allow-lent-resource": "false", PREFIX + "parent": ""}


class BuiltInQuotas(Reconciler[str]):
    """Keys are the names of the quotas."""

    name = "koordinator-built-in-quotas"
    watches: Sequence[Watch] = (Watch(NAMESPACE), Watch(KOORD_ELASTIC_QUOTA))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        for name in _SPECS:
            self.queue.add(name)

    def observe(self, change: Change) -> None:
        name = change.doc["metadata"]["name"]
        if change.kind is NAMESPACE and name == QUOTA_NAMESPACE:
            for one in _SPECS:
                self.queue.add(one)

    def visit(self, key: str, now: float) -> Iterable[Write]:
        namespace = self.view.get(NAMESPACE, "", QUOTA_NAMESPACE)
        if namespace is None:
            if key == DEFAULT:  # one of them needs the namespace; the others wait until it is there
                head = {"apiVersion": NAMESPACE.api_version, "kind": NAMESPACE.kind}
                yield create(NAMESPACE, {**head, "metadata": {"name": QUOTA_NAMESPACE}})
            return
        if namespace["metadata"].get("deletionTimestamp") or self.view.get(KOORD_ELASTIC_QUOTA, QUOTA_NAMESPACE, key):
            return
        metadata = {"name": key, "namespace": QUOTA_NAMESPACE, "labels": _ROOT_LABELS if key == ROOT else {}}
        head = {"apiVersion": KOORD_ELASTIC_QUOTA.api_version, "kind": KOORD_ELASTIC_QUOTA.kind}
        yield create(KOORD_ELASTIC_QUOTA, {**head, "metadata": metadata, "spec": _SPECS[key]})
