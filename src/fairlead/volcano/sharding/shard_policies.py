"""How the sharding controller divides nodes among schedulers: its configuration and its arithmetic.

Schedulers are served in the order of the configuration. Each gets, of the nodes that none before it has taken, those
that all of its policies let through, the highest sum of weighted scores first, cut by the policies that limit:

| policy | filter | score | limit |
|---|---|---|---|
| allocation-rate | minCPUUtil <= use <= maxCPUUtil, in hundredths | where the use lies between the two, 0 to 1 | |
| warmup | | 1 for a node with the label | |
| node-limit | | | the first maxNodes |

Invariant: a node is given to one scheduler at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairlead.config.problems import Path, dotted
from fairlead.config.shapes import (
    ANYTHING,
    ConfigStruct,
    GoField,
    Listed,
    Mapped,
    Misfit,
    Scalar,
    Shape,
    ShapeDecoder,
    WrongValue,
)
from fairlead.core.model.durations import parse_duration
from fairlead.errors import ConfigError

CONFIG_KEY = "sharding.yaml"
DEFAULT_SCHEDULERS = ("volcano:volcano:0.0:0.6:false:2:100", "agent-scheduler:agent:0.7:1.0:true:2:100")
DEFAULT_PERIOD = 60.0
_BATCH = 50  # nodes that the original looks at together
_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "allocation-rate": {"minCPUUtil": 0.0, "maxCPUUtil": 1.0},
    "warmup": {"warmupLabel": "node.volcano.sh/warmup", "warmupLabelValue": "true"},
    "node-limit": {"minNodes": 1, "maxNodes": 1000},
}
"""Policy -> its arguments and their defaults."""


def _hundredths(share: float) -> int:
    return int(share * 100 + 0.5)  # halves go up, as in the original


class ShardNode(NamedTuple):
    """A node: `use` is the share of its CPU that pods request, from 0 to 1."""

    name: str
    use: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ShardPolicy:
    name: str
    weight: float
    arguments: Mapping[str, Any]

    def lets_through(self, node: ShardNode) -> bool:
        if self.name != "allocation-rate":
            return True
        low, high = float(self.arguments["minCPUUtil"]), float(self.arguments["maxCPUUtil"])
        return _hundredths(low) <= _hundredths(node.use) <= _hundredths(high)

    def score(self, node: ShardNode) -> float:
        if self.name == "allocation-rate":
            low, high = self.arguments["minCPUUtil"], self.arguments["maxCPUUtil"]
            return (node.use - low) / (high - low) if high > low else 0.0
        if self.name == "warmup":
            return float(node.labels.get(self.arguments["warmupLabel"]) == self.arguments["warmupLabelValue"])
        return 0.0


@dataclass(frozen=True, slots=True)
class ShardedScheduler:
    name: str
    policies: tuple[ShardPolicy, ...]

    @property
    def least(self) -> int:
        """How many nodes it should have."""
        return max((int(one.arguments["minNodes"]) for one in self.policies if one.name == "node-limit"), default=0)

    def choose(self, nodes: Iterable[ShardNode]) -> list[ShardNode]:
        """The nodes of its shard, of those that are free."""
        left = [node for node in nodes if all(policy.lets_through(node) for policy in self.policies)]
        left.sort(key=lambda node: -sum(policy.weight * policy.score(node) for policy in self.policies))
        for policy in self.policies:
            if policy.name == "node-limit":
                left = left[: int(policy.arguments["maxNodes"])]
        return left


@dataclass(frozen=True, slots=True)
class ShardConfig:
    schedulers: tuple[ShardedScheduler, ...] = ()
    period: float = DEFAULT_PERIOD
    follows_nodes: bool = True
    """Whether nodes that come and go are a reason to divide anew before the period is over."""


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise WrongValue(f'"{value}" is not a number') from None


_NUMBER = Scalar("number", _number)
_POLICY = ConfigStruct("policy", {"name": ANYTHING, "weight": _NUMBER, "arguments": Mapped(ANYTHING)})
_SCHEDULER = ConfigStruct("scheduler", {"name": ANYTHING, "type": ANYTHING, "policies": Listed(_POLICY)})
_CONFIGURATION = ConfigStruct(
    "configuration",
    {"schedulerConfigs": Listed(_SCHEDULER), "shardSyncPeriod": ANYTHING, "enableNodeEventTrigger": ANYTHING},
)
_SHAPES = {
    policy: ConfigStruct(
        policy, {key: ANYTHING if isinstance(value, str) else _NUMBER for key, value in arguments.items()}
    )
    for policy, arguments in _ARGUMENTS.items()
}


class _ShardDecoder(ShapeDecoder):
    """Raises a ConfigError at the first thing that does not fit. `name` is what is read: the file, or the flag."""

    nulls_are_zero = False

    def __init__(self, name: str = CONFIG_KEY, at: Path = ()) -> None:
        super().__init__(at)
        self._name = name

    def fail(self, path: Path, text: str, hint: str = "") -> ConfigError:
        return ConfigError(f"{self._place(path)}: {text}", hint=hint)

    def _place(self, path: Path) -> str:
        """The entry of a list that a path leads to or through."""
        entry = dotted(path[: max((at + 1 for at, step in enumerate(path) if isinstance(step, int)), default=0)])
        if self._name != CONFIG_KEY:
            return f"{self._name}.{entry}" if entry else self._name
        return f"{self._name}: {entry}" if entry else self._name

    def _unknown(self, path: Path, name: Any, known: Sequence[str]) -> None:
        raise self.fail(path, f'there is no field "{name}"', "one of: " + ", ".join(known))

    def _misfit(self, path: Path, shape: Shape, value: Any, field: GoField, misfit: Misfit) -> None:
        if isinstance(shape, Listed):
            raise self.fail(path[:-1], f"{path[-1]}: not a list")
        raise self.fail(path, "not a mapping")

    def _wrong(self, path: Path, shape: Shape, error: ValueError) -> None:
        raise self.fail(path, f"{path[-1]}: {error}")

    def schedulers(self, decoded: Iterable[Mapping[str, Any]], path: Path) -> Iterator[ShardedScheduler]:
        seen: set[str] = set()
        for index, one in enumerate(decoded):
            where, name = (*path, index), str(one.get("name") or "")
            if not name or name in seen:
                raise self.fail(where, "every scheduler needs a name of its own")
            seen.add(name)
            yield ShardedScheduler(name, self.policies(one.get("policies", ()), (*where, "policies")))

    def policies(self, decoded: Iterable[Mapping[str, Any]], path: Path) -> tuple[ShardPolicy, ...]:
        return tuple(self._policy(one, (*path, index)) for index, one in enumerate(decoded))

    def _policy(self, fields: Mapping[str, Any], path: Path) -> ShardPolicy:
        name = str(fields.get("name"))
        if name not in _SHAPES:
            raise self.fail(path, f'there is no policy "{name}"', "one of: " + ", ".join(_SHAPES))
        given = _ShardDecoder(self._name, (*path, "arguments")).decode(_SHAPES[name], fields.get("arguments", {}))
        arguments = {**_ARGUMENTS[name], **given}
        if "minCPUUtil" in arguments and not 0 <= arguments["minCPUUtil"] <= arguments["maxCPUUtil"] <= 1:
            raise self.fail(path, "minCPUUtil and maxCPUUtil are from 0 to 1, the first not above the second")
        if "minNodes" in arguments and not 0 <= arguments["minNodes"] <= arguments["maxNodes"]:
            raise self.fail(path, "minNodes and maxNodes are not below 0, the first not above the second")
        return ShardPolicy(name, fields.get("weight", 1.0), arguments)


def read_shard_config(document: Any) -> ShardConfig:
    """The configuration in a ConfigMap. Raises ConfigError."""
    decoder = _ShardDecoder()
    fields = decoder.decode(_CONFIGURATION, document)
    schedulers = tuple(decoder.schedulers(fields.get("schedulerConfigs", ()), ("schedulerConfigs",)))
    period = shard_period(str(fields.get("shardSyncPeriod") or "60s"), f"{CONFIG_KEY}: shardSyncPeriod")
    return ShardConfig(schedulers, period, fields.get("enableNodeEventTrigger", True) is not False)


def shard_period(text: str, where: str = "--shard-sync-period") -> float:
    """After how many seconds nodes are divided anew. Raises ConfigError."""
    try:
        period = parse_duration(text)
    except ValueError:
        raise ConfigError(f'{where}: "{text}" is not a duration like 60s') from None
    if period <= 0:
        raise ConfigError(f"{where}: must be above 0")
    return period


def scheduler_of_words(text: str) -> ShardedScheduler:
    """A scheduler as the flag describes it: name:type:min:max:warm:least:most. Raises ConfigError."""
    words = text.split(":")
    if len(words) != 7 or words[4] not in ("true", "false"):
        raise ConfigError(
            f'"{text}" does not describe a scheduler',
            hint="name:type:min_util:max_util:prefer_warmup:min_nodes:max_nodes, as in " + DEFAULT_SCHEDULERS[0],
        )
    name, kind, low, high, warm, least, most = words
    policies: list[dict[str, Any]] = [
        {"name": "allocation-rate", "arguments": {"minCPUUtil": low, "maxCPUUtil": high}},
        {"name": "node-limit", "arguments": {"minNodes": least, "maxNodes": most}},
    ]
    if warm == "true":
        policies.insert(1, {"name": "warmup"})
    if not name:
        raise ConfigError(f'"{text}": every scheduler needs a name of its own')
    decoder = _ShardDecoder(f'"{text}"')
    decoded = decoder.decode(_SCHEDULER, {"name": name, "type": kind, "policies": policies})
    return ShardedScheduler(name, decoder.policies(decoded["policies"], ("policies",)))


def divide(
    schedulers: Sequence[ShardedScheduler], nodes: Sequence[ShardNode], *, in_batches: bool
) -> dict[str, list[str]]:
    """Scheduler -> names of its nodes. `in_batches` applies limits to every fifty nodes anew, as the original does."""
    shards: dict[str, list[str]] = {scheduler.name: [] for scheduler in schedulers}
    size = _BATCH if in_batches else max(1, len(nodes))
    for start in range(0, len(nodes), size):
        free = {node.name: node for node in nodes[start : start + size]}
        for scheduler in schedulers:
            chosen = scheduler.choose(free.values())
            shards[scheduler.name] += [node.name for node in chosen]
            for node in chosen:
                del free[node.name]
    return shards


def is_worth_writing(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether a shard has changed enough: in its size, or by a tenth of its nodes."""
    if len(before) != len(after):
        return True
    return len(set(after) - set(before)) >= max(1, len(after) // 10)
