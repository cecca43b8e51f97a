"""resource-strategy-fit: each resource has a strategy of its own. GPUs can be packed while CPUs are spread.

Beyond that, `sra` keeps pods that need nothing scarce off the nodes that have it, and `proportional` leaves enough cpu
and memory beside idle scarce resources for those who will come for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.reasons import Reason, Reject
from fairlead.volcano.rounds.tiers import TierPlugin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Round, Task

_BEST = 100.0
_MOST, _LEAST = "MostAllocated", "LeastAllocated"
_TYPE_ANNOTATION = "volcano.sh/resource-strategy-scoring-type"
_WEIGHT_ANNOTATION = "volcano.sh/resource-strategy-weight"
_MEGA = 1000.0 * 1000.0


@dataclass(frozen=True, slots=True)
class Strategy:
    """Whether much or little of a resource should be in use, and how much that matters."""

    kind: str = _LEAST
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Scarce:
    """What is scarce, by weight; with a `weight` of 0 it does not matter."""

    weight: int = 0
    weights: Mapping[str, int] = field(default_factory=dict)


_DEFAULT: Mapping[str, Strategy] = {"cpu": Strategy(), "memory": Strategy()}


class ResourceStrategyFit(TierPlugin):
    """A name in `strategies` that ends in `*` stands for all that begin like it. `proportions` are the cpus and the
    memory to leave beside each unit of a resource."""

    name = "resource-strategy-fit"

    def __init__(
        self,
        strategies: Mapping[str, Strategy] = _DEFAULT,
        *,
        weight: int = 10,
        scarce: Scarce | None = None,
        proportions: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self._strategies = {name: one for name, one in strategies.items() if _is_pattern_or_name(name)}
        self._weight = weight
        self._scarce = scarce or Scarce()
        self._proportions = proportions or {}

    @classmethod
    def of(cls, arguments: Arguments) -> ResourceStrategyFit:
        return cls(
            _strategies(arguments) or _DEFAULT,
            weight=arguments.whole("resourceStrategyFitWeight", 10, least=0),
            scarce=_scarce(arguments.mapping("sra")),
            proportions=_proportions(arguments.mapping("proportional")),
        )

    def open(self, round: Round) -> None:
        self._usage = round.resources

    # ---- leaving enough beside what is scarce ----

    def predicate(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        if any(task.request.scalars.get(name, 0.0) > 0 for name in self._proportions):
            return
        resources, rows = self._usage, nodes.row_numbers()
        cpu = resources.idle["cpu"][rows] - task.request.cpu
        memory = resources.idle["memory"][rows] - task.request.memory
        for name, (cpus, memories) in self._proportions.items():
            idle = resources.column(resources.idle, name)[rows]
            has = resources.column(resources.allocatable, name)[rows] > 0
            short = has & ((cpu < idle * cpus) | (memory < idle * memories * _MEGA))
            yield Reject(Reason(self.name, f"proportional of resource {name} check failed", final=True), short)

    # ---- scores ----

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        rows = nodes.row_numbers()
        score = np.zeros(len(rows), dtype=np.float64)
        if self._weight > 0:
            score += self._fit(task, rows)
        if self._scarce.weight > 0:
            score += self._sparing(task, rows)
        return score

    def _fit(self, task: Task, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        resources = self._usage
        score, too_small = np.zeros(len(rows), dtype=np.float64), np.zeros(len(rows), dtype=np.bool_)
        weighed = 0
        for name, strategy in self._strategies_for(task):
            weighed += strategy.weight
            room = resources.column(resources.allocatable, name)[rows]
            used = resources.column(resources.used, name)[rows] + task.request.get(name)
            counts = (room != 0) & (strategy.weight != 0)
            too_small |= counts & (used > room)
            part = used if strategy.kind == _MOST else room - used
            score += np.divide(part * strategy.weight, room, out=np.zeros_like(score), where=counts)
        if weighed > 0:
            score /= weighed
        score *= _BEST * self._weight
        score[too_small] = 0.0
        return score

    def _strategies_for(self, task: Task) -> list[tuple[str, Strategy]]:
        """The strategies of what a task requests; its own annotations go before the configuration."""
        own = _own_strategies(task)
        asked = task.request.names()
        if own is not None:
            return [(name, own[name]) for name in asked if name in own]
        return [(name, found) for name in asked if (found := self._strategy(name)) is not None]

    def _strategy(self, name: str) -> Strategy | None:
        """The one of just this name, else of the longest beginning."""
        if name in self._strategies:
            return self._strategies[name]
        prefixes = [one for one in self._strategies if one.endswith("*") and name.startswith(one[:-1])]
        return self._strategies[max(prefixes, key=len)] if prefixes else None

    def _sparing(self, task: Task, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """The less that is scarce a node has, the better; nothing for one that lacks what is requested."""
        resources = self._usage
        has_all = np.ones(len(rows), dtype=np.bool_)
        for name in task.request.names():
            has_all &= resources.column(resources.allocatable, name)[rows] != 0
        present = np.zeros(len(rows), dtype=np.float64)
        for name, weight in self._scarce.weights.items():
            present += weight * (resources.column(resources.allocatable, name)[rows] > 0)
        total = sum(self._scarce.weights.values())
        spared = 1.0 - present / total if total > 0 else present
        return np.where(has_all, spared * _BEST * self._scarce.weight, 0.0)


def _is_pattern_or_name(name: str) -> bool:
    return "*" not in name or (name != "*" and name.endswith("*") and name.count("*") == 1)


def _own_strategies(task: Task) -> dict[str, Strategy] | None:
    kind = task.pod.annotations.get(_TYPE_ANNOTATION)
    if not kind:
        return None
    try:
        weights = json.loads(task.pod.annotations.get(_WEIGHT_ANNOTATION, ""))
    except ValueError:
        return {}
    if not isinstance(weights, dict) or kind not in (_MOST, _LEAST):
        return {}
    return {str(name): Strategy(kind, weight) for name, weight in weights.items() if type(weight) is int}


def _strategies(arguments: Arguments) -> dict[str, Strategy]:
    listed = arguments.mapping("resources")
    strategies = {}
    for name in listed:
        one = listed.mapping(name)
        kind = one.text("type")
        strategies[name] = Strategy(kind if kind in (_MOST, _LEAST) else _LEAST, one.whole("weight", 1, least=1))
    return strategies


def _scarce(arguments: Arguments) -> Scarce:
    if not arguments.flag("enable", default=False):
        return Scarce()
    weights = arguments.mapping("resourceWeight")
    listed = {name: weights.whole(name, 1, least=0) for name in arguments.names("resources")}
    return Scarce(arguments.whole("weight", 0), listed)


def _proportions(arguments: Arguments) -> dict[str, tuple[float, float]]:
    if not arguments.flag("enable", default=False):
        return {}
    rates = arguments.mapping("resourceProportion")
    return {
        name: (rates.number(f"{name}.cpu", 1.0, least=0), rates.number(f"{name}.memory", 1.0, least=0))
        for name in arguments.names("resources")
    }
