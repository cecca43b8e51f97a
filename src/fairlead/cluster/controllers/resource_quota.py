"""ResourceQuotas: what is used, counted from the objects themselves.

Admission adds to a quota's status what it lets in; this controller takes away what has ended, and puts right what was
changed by other means. Totals are kept per quota and changed with every object, so a visit costs nothing but its
write. It writes only over the version of the quota that it has seen: that version names every object admitted so far,
because the Store publishes an object before the quota that was charged for it.

Objects are remembered only in namespaces that have quotas.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.cluster.controllers.workqueue import ControllerContext, Reconciler
from fairlead.cluster.controllers.writes import namespaced_name, patch
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.kinds import EVENT, LEASE, RESOURCE_QUOTA, Kind, Registry
from fairlead.core.model.quota import Usage, counts, hard_limits, spelled, usage_of

Key = tuple[str, str]
_Thing = tuple[Kind, str]


class ResourceQuotaController(Reconciler[Key]):
    name = "resourcequota-controller"

    def __init__(self, view: DocView, *, registry: Registry | None = None) -> None:
        super().__init__(view)
        self._registry = registry or Registry()
        self.watches = [Watch(kind) for kind in self._registry if _is_counted(kind)]
        self._quotas: dict[str, dict[str, Doc]] = {}  # namespace -> quotas as last seen
        self._charges: dict[Key, dict[_Thing, Usage]] = {}  # quota -> what each object uses of it
        self._totals: dict[Key, Usage] = {}

    @classmethod
    def from_context(cls, context: ControllerContext) -> ResourceQuotaController:
        return cls(context.view, registry=context.registry)

    @property
    def sees_plain_pods(self) -> bool:
        """Whether any quota counts them."""
        return bool(self._quotas)

    def observe(self, change: Change) -> None:
        namespace, name = namespaced_name(change.doc)
        if change.kind is RESOURCE_QUOTA:
            self._observe_quota(change, namespace, name)
        for quota in self._quotas.get(namespace, ()):
            gone = change.gone
            self._charge((namespace, quota), (change.kind, name), None if gone else change.doc)

    def _observe_quota(self, change: Change, namespace: str, name: str) -> None:
        key, quotas = (namespace, name), self._quotas.setdefault(namespace, {})
        old = quotas.pop(name, None)
        if change.gone:
            self._charges.pop(key, None)
            self._totals.pop(key, None)
            if not quotas:
                del self._quotas[namespace]
            return
        quotas[name] = change.doc
        if old is None or old.get("spec") != change.doc.get("spec"):
            self._recount(key)
        self.queue.add(key)

    def _recount(self, key: Key) -> None:
        self._charges[key], self._totals[key] = {}, {}
        for kind in self._registry:
            if _is_counted(kind):
                for doc in self.view.list(kind, key[0]):
                    self._charge(key, (kind, doc["metadata"]["name"]), doc)

    def _charge(self, key: Key, thing: _Thing, doc: Doc | None) -> None:
        charges, totals = self._charges[key], self._totals[key]
        quota = self._quotas[key[0]][key[1]]
        new = _share(quota, thing[0], doc) if doc is not None else {}
        old = charges.pop(thing, {})
        if new:
            charges[thing] = new
        if old == new:
            return
        for name in {**old, **new}:
            totals[name] = totals.get(name, 0) - old.get(name, 0) + new.get(name, 0)
        self.queue.add(key)

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        quota = self._quotas.get(key[0], {}).get(key[1])
        if quota is None:
            return
        limits, totals = hard_limits(quota), self._totals[key]
        used = {name: spelled(name, totals.get(name, 0), limit) for name, limit in limits.items()}
        hard, known = (quota.get("spec") or {}).get("hard") or {}, quota.get("status") or {}
        if known.get("used") == used and known.get("hard") == hard:
            return
        status = {"hard": _replacing(known.get("hard"), hard), "used": _replacing(known.get("used"), used)}
        version = {"resourceVersion": quota["metadata"]["resourceVersion"]}
        yield patch(RESOURCE_QUOTA, quota, {"metadata": version, "status": status}, subresource="status")


def _share(quota: Doc, kind: Kind, doc: Doc) -> Usage:
    """The part of an object's usage that a quota limits."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    if not counts(quota, kind, doc):
        return {}
    return {name: nanos for name, nanos in usage_of(kind, doc).items() if name in hard}


def _is_counted(kind: Kind) -> bool:
    return kind.namespaced and kind.stored_as is None and kind not in (EVENT, LEASE)


def _replacing(old: Doc | None, new: Doc) -> Doc:
    """A merge patch that leaves just the new fields."""
    return {**dict.fromkeys(old or {}), **new}
