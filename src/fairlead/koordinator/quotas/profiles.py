"""QuotaProfiles: an ElasticQuotaProfile makes the root quota of a tree from the nodes that it selects.

The quota's min is what the nodes have together, times the profile's ratio, and its max is as good as none. The tree's
id follows from the profile's name, unless a label gives it. Every ten seconds, and whenever nodes or the profile
change, the quota is made or brought up to date. Koordinator's manager does this on a real cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import create, namespaced_name, patch
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.hashes import fnv64a
from fairlead.core.model.kinds import NODE
from fairlead.core.model.node import Node, compile_node
from fairlead.core.model.quantity import format_quantity
from fairlead.core.model.selectors import selector_from_document
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA, KOORD_QUOTA_PROFILE
from fairlead.koordinator.records.quotas import PREFIX

_AGAIN = 10.0
_MOST = (2**63 - 1) // 2000
_KEYS = ("cpu", "memory")

Key = tuple[str, str]


class QuotaProfiles(Reconciler[Key]):
    name = "quotaprofile-controller"
    watches: Sequence[Watch] = (Watch(KOORD_QUOTA_PROFILE), Watch(NODE), Watch(KOORD_ELASTIC_QUOTA))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._nodes: dict[str, Node] = {}
        self._profiles: dict[Key, None] = {}

    def observe(self, change: Change) -> None:
        gone = change.gone
        if change.kind is KOORD_QUOTA_PROFILE:
            key = namespaced_name(change.doc)
            self._profiles.pop(key, None)
            if not gone:
                self._profiles[key] = None
                self.queue.add(key)
        elif change.kind is NODE:
            name = change.doc["metadata"]["name"]
            old = self._nodes.pop(name, None)
            if not gone:
                self._nodes[name] = compile_node(change.doc)
            if _offer(old) != _offer(self._nodes.get(name)):
                for key in self._profiles:
                    self.queue.add(key)

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        profile = self.view.get(KOORD_QUOTA_PROFILE, *key)
        if profile is None:
            return
        self.queue.add_at(key, now + _AGAIN)
        tree = (profile["metadata"].get("labels") or {}).get(PREFIX + "tree-id")
        if not tree:
            tree = str(fnv64a(f"{key[0]}/{key[1]}"))
            yield patch(KOORD_QUOTA_PROFILE, profile, {"metadata": {"labels": {PREFIX + "tree-id": tree}}})
        wanted = self._quota(profile, tree)
        quota = self.view.get(KOORD_ELASTIC_QUOTA, key[0], wanted["metadata"]["name"])
        if quota is None:
            yield create(KOORD_ELASTIC_QUOTA, wanted)
        elif not _has(quota, wanted):
            metadata = {part: wanted["metadata"][part] for part in ("labels", "annotations")}
            yield patch(KOORD_ELASTIC_QUOTA, quota, {"metadata": metadata, "spec": wanted["spec"]})

    def _quota(self, profile: Doc, tree: str) -> Doc:
        metadata, spec = profile["metadata"], profile["spec"]
        selector, ratio = selector_from_document(spec.get("nodeSelector")), _ratio(spec.get("resourceRatio"))
        total: dict[str, int] = {}
        unschedulable: dict[str, int] = {}
        for node in self._nodes.values():
            if selector.matches(node.labels):
                _add(total, node.allocatable)
                if node.unschedulable or not node.ready:
                    _add(unschedulable, node.allocatable)
        amounts = [{name: int(amount * ratio) for name, amount in one.items()} for one in (total, unschedulable)]
        keys = _resource_keys(metadata.get("annotations") or {})
        labels = {
            PREFIX + "profile": metadata["name"],
            **(spec.get("quotaLabels") or {}),
            PREFIX + "tree-id": tree,
            PREFIX + "is-root": "true",
        }
        annotations = {
            PREFIX + "total-resource": _text(amounts[0]),
            PREFIX + "unschedulable-resource": _text(amounts[1]),
        }
        return {
            "apiVersion": KOORD_ELASTIC_QUOTA.api_version,
            "kind": KOORD_ELASTIC_QUOTA.kind,
            "metadata": {
                "name": spec["quotaName"],
                "namespace": metadata["namespace"],
                "labels": labels,
                "annotations": annotations,
            },
            "spec": {
                "min": {name: format_quantity(amounts[0].get(name, 0), name) for name in keys},
                "max": dict.fromkeys(keys, str(_MOST)),
            },
        }


def _offer(node: Node | None) -> tuple[object, ...] | None:
    return None if node is None else (node.labels, node.allocatable, node.unschedulable, node.ready)


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _ratio(text: str | None) -> float:
    """A share of what nodes have, above 0 and at most 1; anything else is all of it."""
    try:
        ratio = float(text or "1")
    except ValueError:
        return 1.0
    return ratio if 0 < ratio <= 1 else 1.0


def _resource_keys(annotations: Mapping[str, str]) -> list[str]:
    try:
        keys = json.loads(annotations.get(PREFIX + "resource-keys") or "null")
    except ValueError:
        keys = None
    return [str(key) for key in keys] if isinstance(keys, list) else list(_KEYS)


def _text(amounts: Mapping[str, int]) -> str:
    spelt = {name: format_quantity(amount, name) for name, amount in sorted(amounts.items())}
    return json.dumps(spelt, separators=(",", ":"))


def _has(quota: Doc, wanted: Doc) -> bool:
    """Whether a quota has all that is wanted; labels and annotations of others are left alone."""
    for part in ("labels", "annotations"):
        there = quota["metadata"].get(part) or {}
        if any(there.get(name) != value for name, value in wanted["metadata"][part].items()):
            return False
    spec = quota.get("spec") or {}
    return all(spec.get(part) == wanted["spec"][part] for part in ("min", "max"))
