"""PodDisruptionBudgets: how many pods may be evicted now.

A budget counts the pods its selector finds and, where it is given as a share or as what may be missing, asks the
owners of those pods how many there should be. Evictions write themselves into `status.disruptedPods` and take one
disruption away; so this controller writes only over the version it has seen, and counts a pod named there as gone for
two minutes at most.

Pods are remembered only in namespaces that have budgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fairlead.cluster.controllers.workloads.shares import share
from fairlead.cluster.controllers.workqueue import ControllerContext, Reconciler
from fairlead.cluster.controllers.writes import condition, controller_of, namespaced_name, patch
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.kinds import (
    DEPLOYMENT,
    POD,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Registry,
)
from fairlead.core.model.selectors import LabelSelector, SelectorError, selector_from_document
from fairlead.core.model.times import seconds_of, timestamp

Key = tuple[str, str]

_PATIENCE = 120.0
"""How long an evicted pod counts as gone before it is."""


class _Pod(NamedTuple):
    labels: dict[str, str]
    ready: bool
    deleting: bool
    owner: tuple[str, str, str, str] | None  # apiVersion, kind, name, uid


class _Count(NamedTuple):
    expected: int
    desired: int


class _Unknowable(Exception):
    """The expected number of pods cannot be found out."""


class Disruptions(Reconciler[Key]):
    name = "disruption-controller"
    component = "controllermanager"
    watches: Sequence[Watch] = (
        Watch(POD_DISRUPTION_BUDGET), Watch(POD), Watch(DEPLOYMENT), Watch(REPLICA_SET), Watch(STATEFUL_SET),
        Watch(REPLICATION_CONTROLLER),
    )  # fmt: skip

    def __init__(self, view: DocView, *, registry: Registry | None = None, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._registry = registry or Registry()
        self._selectors: dict[str, dict[str, LabelSelector]] = {}  # namespace -> budget -> selector
        self._budgets: dict[Key, Doc] = {}  # as last seen
        self._pods: dict[str, dict[str, _Pod]] = {}

    @classmethod
    def from_context(cls, context: ControllerContext) -> Disruptions:
        return cls(context.view, registry=context.registry, announce=context.announce)

    @property
    def sees_plain_pods(self) -> bool:
        """Whether there is any budget: an empty selector means all pods."""
        return bool(self._selectors)

    def observe(self, change: Change) -> None:
        namespace, name = namespaced_name(change.doc)
        if change.kind is POD_DISRUPTION_BUDGET:
            self._observe_budget(change, namespace, name)
        elif namespace not in self._selectors:
            return
        elif change.kind is POD:
            self._observe_pod(change, namespace, name)
        else:
            self._name_all(namespace)

    def _observe_budget(self, change: Change, namespace: str, name: str) -> None:
        budgets = self._selectors.setdefault(namespace, {})
        if change.gone:
            budgets.pop(name, None)
            self._budgets.pop((namespace, name), None)
            if not budgets:
                del self._selectors[namespace]
                self._pods.pop(namespace, None)
            return
        if namespace not in self._pods:
            self._pods[namespace] = {namespaced_name(pod)[1]: _pod(pod) for pod in self.view.list(POD, namespace)}
        budgets[name] = _selector(change.doc)
        self._budgets[namespace, name] = change.doc
        self.queue.add((namespace, name))

    def _observe_pod(self, change: Change, namespace: str, name: str) -> None:
        pods = self._pods[namespace]
        old = pods.pop(name, None)
        new = None if change.gone else _pod(change.doc)
        if new is not None:
            pods[name] = new
        if old == new:
            return
        for budget, selector in self._selectors[namespace].items():
            if any(pod is not None and selector.matches(pod.labels) for pod in (old, new)):
                self.queue.add((namespace, budget))

    def _name_all(self, namespace: str) -> None:
        for budget in self._selectors[namespace]:
            self.queue.add((namespace, budget))

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        budget = self._budgets.get(key)
        if budget is None:
            return
        selector = self._selectors[key[0]][key[1]]
        pods = {name: pod for name, pod in self._pods[key[0]].items() if selector.matches(pod.labels)}
        try:
            count = self._count(key[0], budget["spec"], pods)
        except _Unknowable as error:
            yield from self._fail(budget, str(error), now)
            return
        evicted = self._evicted(key, budget, pods, now)
        healthy = sum(pod.ready and not pod.deleting and name not in evicted for name, pod in pods.items())
        allowed = max(0, healthy - count.desired) if count.expected > 0 else 0
        writes = list(
            self._write(
                budget,
                {
                    "currentHealthy": healthy,
                    "desiredHealthy": count.desired,
                    "expectedPods": count.expected,
                    "disruptionsAllowed": allowed,
                    "observedGeneration": budget["metadata"].get("generation") or 0,
                    "conditions": _condition(budget, "SufficientPods" if allowed else "InsufficientPods", now),
                    "disruptedPods": _remaining(budget, evicted),
                },
            )
        )
        if writes and not pods:
            yield from self.event(POD_DISRUPTION_BUDGET, budget, "NoPods", "No matching pods found")
        yield from writes

    def _fail(self, budget: Doc, why: str, now: float) -> Iterable[Write]:
        """To be on the safe side: no disruptions."""
        failed = _condition(budget, "SyncFailed", now, message=why)
        writes = list(self._write(budget, {"disruptionsAllowed": 0, "conditions": failed}))
        if writes:
            text = f"Failed to calculate the number of expected pods: {why}"
            yield from self.event(POD_DISRUPTION_BUDGET, budget, "CalculateExpectedPodCountFailed", text, warning=True)
        yield from writes

    def _count(self, namespace: str, spec: Doc, pods: dict[str, _Pod]) -> _Count:
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if most is not None:
            expected = self._expected(namespace, pods)
            return _Count(expected, max(0, expected - share(most, expected, round_up=True)))
        if isinstance(least, str):
            expected = self._expected(namespace, pods)
            return _Count(expected, share(least, expected, round_up=True))
        return _Count(len(pods), int(least or 0))

    def _expected(self, namespace: str, pods: dict[str, _Pod]) -> int:
        """How many pods the owners of these want, each owner counted once."""
        scales: dict[str, int] = {}
        asked: set[str] = set()
        for name, pod in pods.items():
            if pod.owner is not None and pod.owner[3] not in asked:
                asked.add(pod.owner[3])
                uid, replicas = self._scale(namespace, name, pod.owner)
                scales[uid] = replicas
        return sum(scales.values())

    def _scale(self, namespace: str, pod: str, owner: tuple[str, str, str, str]) -> tuple[str, int]:
        api_version, kind_name, name, uid = owner
        kind = self._registry.by_kind(api_version, kind_name)
        if kind is None:
            raise _Unknowable(f'found no controllers for pod "{pod}"')
        if "scale" not in kind.subresources:
            raise _Unknowable(f"{kind.resource} does not implement the scale subresource")
        found = self.view.get(kind, namespace, name)
        if found is None or found["metadata"]["uid"] != uid:
            raise _Unknowable(f'found no controllers for pod "{pod}"')
        above = controller_of(found) if kind is REPLICA_SET else None
        if above is not None and above.get("kind") == DEPLOYMENT.kind:
            found = self.view.get(DEPLOYMENT, namespace, above["name"]) or found
        replicas = (found.get("spec") or {}).get("replicas")
        return found["metadata"]["uid"], 1 if replicas is None else int(replicas)

    def _evicted(self, key: Key, budget: Doc, pods: dict[str, _Pod], now: float) -> set[str]:
        """Pods whose eviction was granted and that are not yet being deleted."""
        evicted = set()
        for name, since in ((budget.get("status") or {}).get("disruptedPods") or {}).items():
            pod, until = pods.get(name), seconds_of(since) + _PATIENCE
            if pod is not None and not pod.deleting and now < until:
                evicted.add(name)
                self.queue.add_at(key, until)
        return evicted

    def _write(self, budget: Doc, status: Doc) -> Iterable[Write]:
        known = budget.get("status") or {}
        if all((known.get(name) or None) == (value or None) for name, value in status.items()) and known:
            return
        version = {"resourceVersion": budget["metadata"]["resourceVersion"]}
        body: dict[str, Any] = {"metadata": version, "status": status}
        yield patch(POD_DISRUPTION_BUDGET, budget, body, subresource="status")


def _pod(doc: Doc) -> _Pod:
    owner = controller_of(doc)
    return _Pod(
        labels=doc["metadata"].get("labels") or {},
        ready=(condition(doc, "Ready") or {}).get("status") == "True",
        deleting=bool(doc["metadata"].get("deletionTimestamp")),
        owner=None if owner is None else (owner["apiVersion"], owner["kind"], owner["name"], owner["uid"]),
    )


def _selector(budget: Doc) -> LabelSelector:
    try:
        return selector_from_document(budget["spec"].get("selector"))
    except SelectorError:
        return selector_from_document(None)


def _condition(budget: Doc, reason: str, now: float, *, message: str = "") -> list[Doc]:
    known: list[Doc] = (budget.get("status") or {}).get("conditions") or []
    old = condition(budget, "DisruptionAllowed") or {}
    status = "True" if reason == "SufficientPods" else "False"
    since = old["lastTransitionTime"] if old.get("status") == status else timestamp(now)
    new = {
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": budget["metadata"].get("generation") or 0,
        "lastTransitionTime": since,
    }
    return [new if one is old else one for one in known] if old else [*known, new]


def _remaining(budget: Doc, evicted: set[str]) -> Doc | None:
    """The change that leaves just these in `disruptedPods`; None takes the whole field away."""
    known = (budget.get("status") or {}).get("disruptedPods") or {}
    if not evicted:
        return None
    return {name: since if name in evicted else None for name, since in known.items()}
