"""LendingTree: the quotas of one tree with what is requested, used and granted in each.

Requests go up the tree: a quota's request is that of its pods and of the limited requests of its children; what does
not lend requests its minimum at least. Grants (runtime) come down: a parent's runtime is shared among its children.

Runtime is worked out on request, for the quotas on one path; `version` says of a parent whether anything that
its children's shares depend on has changed since. Minima that do not fit into what a parent has are scaled down in the
same moment, for the quotas on that path alone, as in the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.koordinator.quotas.sharing import Share, share_out
from fairlead.koordinator.records.quotas import BUILT_IN, DEFAULT, ROOT, SYSTEM

if TYPE_CHECKING:
    from fairlead.koordinator.records.quotas import ElasticQuota

Amounts = dict[str, int]
UNLIMITED = (2**63 - 1) // 5
"""The maximum of the default and the system quota in every dimension."""
_OVERFLOWN = -600
"""That maximum in thousandths, as 64 bits hold it: the weight of those two quotas in cpu."""


@dataclass(slots=True)
class TreeRules:
    """`scales`: minima are scaled down where they do not fit. `guarantees`: what a quota uses it keeps. The last two
    are slips of the original (KoordinatorQuirks)."""

    scales: bool = True
    guarantees: bool = False
    rounds_up: bool = False
    defaults_share: bool = False


@dataclass(slots=True, eq=False)
class Pool:
    """What a quota has to share among its children: `total`. `version` counts changes of what their shares depend
    on."""

    children: dict[str, QuotaAccountState] = field(default_factory=dict)
    version: int = 1
    total: Amounts = field(default_factory=dict)
    _minima: Amounts = field(default_factory=dict)

    def sum_of_minima(self, resource: str) -> int:
        """The minima of all children together. They do not change: a change of quotas builds the tree anew."""
        found = self._minima.get(resource)
        if found is None:
            found = self._minima[resource] = sum(child.min.get(resource, 0) for child in self.children.values())
        return found


@dataclass(slots=True, eq=False)
class Fixed:
    """Of the pods that are not preemptible."""

    request: Amounts = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Guarantee:
    """What a quota gets at least: its minimum, `scaled` down where the minima of its siblings do not fit, and what its
    pods were `allocated`, which is `kept` where the rules guarantee it."""

    scaled: Amounts = field(default_factory=dict)
    allocated: Amounts = field(default_factory=dict)
    kept: Amounts = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class QuotaAccountState:
    """One quota. Requests and use are those of its whole subtree; `runtime` is its share of the parent's pool, as of
    the version `seen_version` of that."""

    name: str
    parent: str
    is_parent: bool
    lends: bool
    max: Mapping[str, int]
    min: Mapping[str, int]
    weight: Mapping[str, int]
    request: Amounts = field(default_factory=dict)
    child_request: Amounts = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)
    fixed: Fixed = field(default_factory=Fixed)
    guarantee: Guarantee = field(default_factory=Guarantee)
    runtime: Amounts = field(default_factory=dict)
    seen_version: int = 0
    pool: Pool = field(default_factory=Pool)

    def limited_request(self) -> Amounts:
        return {name: min(amount, self.max.get(name, amount)) for name, amount in self.request.items()}


def add_to(total: Amounts, delta: Mapping[str, int]) -> None:
    """Add amounts; what would fall below nothing is nothing."""
    for name, amount in delta.items():
        total[name] = max(0, total.get(name, 0) + amount)


def difference(new: Mapping[str, int], old: Mapping[str, int]) -> Amounts:
    return {name: new.get(name, 0) - old.get(name, 0) for name in {**new, **old}}


class LendingTree:
    def __init__(self, name: str, quotas: Mapping[str, ElasticQuota], rules: TreeRules) -> None:
        self.name = name
        self.rules = rules
        self.total: Amounts = {}
        self.quotas: dict[str, QuotaAccountState] = {ROOT: _built_in(ROOT, "", lends=False)}
        if not name:
            for built_in in (SYSTEM, DEFAULT):
                self.quotas[built_in] = _built_in(built_in, ROOT, lends=True)
        for quota in quotas.values():
            if quota.name not in BUILT_IN:
                self.quotas[quota.name] = _state(quota, guarantees=rules.guarantees)
        for built_in in (SYSTEM, DEFAULT) if not name else ():
            own = quotas.get(built_in)
            if own is not None and own.max:
                self.quotas[built_in].max, self.quotas[built_in].weight = own.max, own.weight
        for state in self.quotas.values():
            if state.parent in self.quotas:
                self.quotas[state.parent].pool.children[state.name] = state
        self.keys = frozenset(key for state in self.quotas.values() if state.name not in BUILT_IN for key in state.max)
        for state in list(self.quotas.values()):
            if state.name not in BUILT_IN:
                self.change_request(state.name, {}, {})
                self.change_used(state.name, {}, {})

    def path(self, name: str) -> list[QuotaAccountState]:
        """A quota and its ancestors up to the root, as far as they exist."""
        found: list[QuotaAccountState] = []
        state = self.quotas.get(name)
        while state is not None and state not in found:
            found.append(state)
            state = self.quotas.get(state.parent)
        return found

    def leaves(self) -> Iterator[QuotaAccountState]:
        return (state for state in self.quotas.values() if not state.is_parent and state.name not in BUILT_IN)

    # ---- requests and use ----

    def change_request(self, name: str, delta: Mapping[str, int], fixed: Mapping[str, int]) -> None:
        """Pods of a quota request more or less; `fixed` are those of them that are not preemptible."""
        changed: Mapping[str, int] = delta
        for state in self.path(name):
            before = state.limited_request()
            add_to(state.fixed.request, fixed)
            if state.name == ROOT:
                add_to(state.request, changed)
                return
            add_to(state.child_request, changed)
            request = dict(state.child_request)
            if not state.lends:
                for key, amount in state.min.items():
                    request[key] = max(request.get(key, 0), amount)
            state.request = request
            after = state.limited_request()
            changed = difference(after, before)
            parent = self.quotas.get(state.parent)
            if parent is None:
                return
            if any(changed.get(key) for key in self._keys_of(parent)):
                parent.pool.version += 1

    def change_used(self, name: str, delta: Mapping[str, int], fixed: Mapping[str, int]) -> None:
        """Pods of a quota are placed or leave."""
        path = self.path(name)
        for state in path:
            add_to(state.used, delta)
            add_to(state.fixed.used, fixed)
        if self.rules.guarantees:
            self._change_allocated(path, {key: amount for key, amount in delta.items() if key in self.keys})
        if name in (SYSTEM, DEFAULT):
            self.set_total(self.total)

    def _change_allocated(self, path: list[QuotaAccountState], delta: Mapping[str, int]) -> None:
        for state in path:
            before = state.guarantee.kept
            add_to(state.guarantee.allocated, delta)
            if state.name == ROOT:
                return
            state.guarantee.kept = dict(state.guarantee.allocated)
            for key, amount in state.min.items():
                state.guarantee.kept[key] = max(state.guarantee.kept.get(key, 0), amount)
            delta = difference(state.guarantee.kept, before)
            parent = self.quotas.get(state.parent)
            if parent is not None and any(delta.get(key) for key in self._keys_of(parent)):
                parent.pool.version += 1

    def set_total(self, total: Mapping[str, int]) -> None:
        """What the tree has; what system and default pods use is not shared."""
        self.total = dict(total)
        left = dict(total)
        for name in (SYSTEM, DEFAULT):
            if name in self.quotas:
                left = difference(left, self.quotas[name].used)
        root = self.quotas[ROOT]
        if any(difference(left, root.pool.total).values()):
            root.pool.total = left
            root.pool.version += 1

    # ---- runtime ----

    def refresh(self, name: str) -> Iterator[QuotaAccountState]:
        """Work out the runtime of a quota and its ancestors, the root's children first; yields those of which it was
        worked out anew."""
        total = self.quotas[ROOT].pool.total
        path = self.path(name)
        if name in BUILT_IN or not path or path[-1].name != ROOT:
            return
        for at in range(len(path) - 2, -1, -1):
            state, parent = path[at], path[at + 1]
            if self.rules.scales:
                self._scale(state, parent, total)
            if state.seen_version != parent.pool.version:
                self._work_out(state, parent)
                yield state
            if at >= 1:
                state.pool.total = dict(state.runtime)
                state.pool.version += 1
            total = state.runtime

    def _keys_of(self, parent: QuotaAccountState) -> frozenset[str]:
        """The resources that are shared under a parent."""
        return self.keys if parent.name == ROOT else frozenset(parent.max)

    def _scale(self, state: QuotaAccountState, parent: QuotaAccountState, total: Mapping[str, int]) -> None:
        """Bring a quota's minimum to what it is if the minima of all siblings are to fit into the total."""
        scaled = dict(state.min)
        for key, amount in total.items():
            sum_of_minima = parent.pool.sum_of_minima(key)
            if amount < sum_of_minima:
                scaled[key] = (
                    int(float(amount) * float(state.min.get(key, 0)) / float(sum_of_minima)) if amount > 0 else 0
                )
        if scaled != state.guarantee.scaled:
            state.guarantee.scaled = scaled
            parent.pool.version += 1

    def _work_out(self, state: QuotaAccountState, parent: QuotaAccountState) -> None:
        """Share the parent's total among its children, and take what is this quota's."""
        children = [child for child in parent.pool.children.values() if self._takes_part(child)]
        at = children.index(state)
        for key in self._keys_of(parent):
            shares = [self._share(child, key) for child in children]
            parts = share_out(parent.pool.total.get(key, 0), shares, rounds_up=self.rules.rounds_up)
            state.runtime[key] = parts[at]
        state.seen_version = parent.pool.version

    def _takes_part(self, child: QuotaAccountState) -> bool:
        return self.rules.defaults_share or child.name not in BUILT_IN

    def _share(self, child: QuotaAccountState, key: str) -> Share:
        weight = child.weight.get(key, 0)
        if weight == UNLIMITED and key == "cpu" and child.name in BUILT_IN:
            weight = _OVERFLOWN
        request = child.request.get(key, 0)
        if key in child.max:
            request = min(request, child.max[key])
        least = max(child.guarantee.scaled.get(key, 0), child.guarantee.kept.get(key, 0))
        return Share(weight, request, least, child.lends)


def _built_in(name: str, parent: str, *, lends: bool) -> QuotaAccountState:
    unlimited = {} if name == ROOT else {"cpu": UNLIMITED, "memory": UNLIMITED}
    return QuotaAccountState(name, parent, is_parent=name == ROOT, lends=lends, max=unlimited, min={}, weight=unlimited)


def _state(quota: ElasticQuota, *, guarantees: bool) -> QuotaAccountState:
    return QuotaAccountState(
        quota.name,
        quota.parent,
        is_parent=quota.is_parent,
        lends=quota.lends and not guarantees,
        max=quota.max,
        min=quota.min,
        weight=quota.weight,
        guarantee=Guarantee(scaled=dict(quota.min)),
    )
