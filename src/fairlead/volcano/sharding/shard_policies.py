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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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


@dataclass(slots=True)
class _Reader:
    """Reads a configuration; `where` is the field that it is at."""

    where: str = CONFIG_KEY
    seen: set[str] = field(default_factory=set)

    def fail(self, text: str, hint: str = "") -> ConfigError:
        return ConfigError(f"{self.where}: {text}", hint=hint)

    def mapping(self, value: Any, known: Iterable[str]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.fail("not a mapping")
        for key in value:
            if key not in known:
                raise self.fail(f'there is no field "{key}"', hint="one of: " + ", ".join(known))
        return value

    def policy(self, value: Any) -> ShardPolicy:
        said = self.mapping(value, ("name", "weight", "arguments"))
        defaults = _ARGUMENTS.get(str(said.get("name")))
        if defaults is None:
            raise self.fail(f'there is no policy "{said.get("name")}"', hint="one of: " + ", ".join(_ARGUMENTS))
        arguments = dict(defaults)
        for key, given in self.mapping(said.get("arguments") or {}, tuple(defaults)).items():
            arguments[key] = given if isinstance(defaults[key], str) else self.number(key, given)
        self._check(arguments)
        return ShardPolicy(str(said["name"]), self.number("weight", said.get("weight", 1)), arguments)

    def number(self, key: str, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            raise self.fail(f'{key}: "{value}" is not a number') from None

    def _check(self, arguments: Mapping[str, Any]) -> None:
        if "minCPUUtil" in arguments and not 0 <= arguments["minCPUUtil"] <= arguments["maxCPUUtil"] <= 1:
            raise self.fail("minCPUUtil and maxCPUUtil are from 0 to 1, the first not above the second")
        if "minNodes" in arguments and not 0 <= arguments["minNodes"] <= arguments["maxNodes"]:
            raise self.fail("minNodes and maxNodes are not below 0, the first not above the second")

    def scheduler(self, value: Any) -> ShardedScheduler:
        said = self.mapping(value, ("name", "type", "policies"))
        name = str(said.get("name") or "")
        if not name or name in self.seen:
            raise self.fail("every scheduler needs a name of its own")
        self.seen.add(name)
        where, policies = self.where, []
        for index, one in enumerate(said.get("policies") or ()):
            self.where = f"{where}.policies[{index}]"
            policies.append(self.policy(one))
        return ShardedScheduler(name, tuple(policies))


def read_shard_config(document: Any) -> ShardConfig:
    """The configuration in a ConfigMap. Raises ConfigError."""
    reader = _Reader()
    said = reader.mapping(document, ("schedulerConfigs", "shardSyncPeriod", "enableNodeEventTrigger"))
    schedulers = []
    for index, one in enumerate(said.get("schedulerConfigs") or ()):
        reader.where = f"{CONFIG_KEY}: schedulerConfigs[{index}]"
        schedulers.append(reader.scheduler(one))
    period = shard_period(str(said.get("shardSyncPeriod") or "60s"), f"{CONFIG_KEY}: shardSyncPeriod")
    return ShardConfig(tuple(schedulers), period, said.get("enableNodeEventTrigger", True) is not False)


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
    return _Reader(f'"{text}"').scheduler({"name": name, "type": kind, "policies": policies})


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
