"""The legacy Policy (predicates, priorities, extenders), translated with the mapping of Kubernetes 1.22.

The result is a KubeSchedulerConfiguration that lists its plugins point by point, and is loaded like any other. A
predicate without a successor is an error, because dropping it would let pods onto nodes that it kept them from. A
priority without a successor is dropped with a notice.

A plugin of today is enabled at every point that its part needs (VolumeRestrictions filters by what its PreFilter
found), and SchedulingGates is on, because the API refuses to bind a gated pod.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairlead.config.problems import CheckStage, ConfigProblems, Path, suggestion
from fairlead.config.shapes import (
    BOOL,
    INT32,
    INT64,
    NANOSECONDS,
    STRING,
    ConfigStruct,
    Decoder,
    Listed,
    note_unknown_fields,
)
from fairlead.config.source import Source, note_duplicates, parse_source, read_text
from fairlead.errors import ConfigError
from fairlead.kube.config.gates import DEFAULT_GATES, Gates
from fairlead.kube.config.kube import configuration_from, kube_config_from
from fairlead.kube.config.plugin_sets import IN_TREE, Capabilities
from fairlead.kube.config.policy_tables import (
    ALGORITHM_PROVIDERS,
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    IGNORED_PRIORITY,
    MANDATORY_PREDICATES,
    MOVED_TO_CSI,
    PREDICATE_ALIASES,
    PREDICATE_ORDER,
    PREDICATES,
    PRIORITIES,
    PRIORITY_ALIASES,
    STRATEGIES,
    TAINTED_CONDITIONS,
)
from fairlead.kube.config.shapes import API_VERSION, KIND, MANAGED_RESOURCE, RESOURCE, SHAPE_POINT, TLS_FIELDS

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.kube.config.records import KubeConfig

CONFIG_MAP_KEY = "policy.cfg"
MAX_WEIGHT = (2**63 - 1) // 100
FILTERING = ("preFilter", "filter", "reserve", "preBind")
SCORING = ("preScore", "score")

_EXTENDER = ConfigStruct(
    "v1.LegacyExtender",
    {
        "urlPrefix": STRING, "filterVerb": STRING, "preemptVerb": STRING, "prioritizeVerb": STRING, "weight": INT64,
        "bindVerb": STRING, "enableHttps": BOOL,
        "tlsConfig": ConfigStruct("v1.ExtenderTLSConfig", TLS_FIELDS, any_case=True),
        "httpTimeout": NANOSECONDS, "nodeCacheCapable": BOOL, "managedResources": Listed(MANAGED_RESOURCE),
        "ignorable": BOOL,
    },
    any_case=True,
)  # fmt: skip
_PREDICATE_ARGUMENT = ConfigStruct(
    "v1.PredicateArgument",
    {
        "serviceAffinity": ConfigStruct("v1.ServiceAffinity", {"labels": Listed(STRING)}),
        "labelsPresence": ConfigStruct("v1.LabelsPresence", {"labels": Listed(STRING), "presence": BOOL}),
    },
)
_PRIORITY_ARGUMENT = ConfigStruct(
    "v1.PriorityArgument",
    {
        "serviceAntiAffinity": ConfigStruct("v1.ServiceAntiAffinity", {"label": STRING}),
        "labelPreference": ConfigStruct("v1.LabelPreference", {"label": STRING, "presence": BOOL}),
        "requestedToCapacityRatioArguments": ConfigStruct(
            "v1.RequestedToCapacityRatioArguments", {"shape": Listed(SHAPE_POINT), "resources": Listed(RESOURCE)}
        ),
    },
)
POLICY = ConfigStruct(
    "v1.Policy",
    {
        "apiVersion": STRING,
        "kind": STRING,
        "predicates": Listed(ConfigStruct("v1.PredicatePolicy", {"name": STRING, "argument": _PREDICATE_ARGUMENT})),
        "priorities": Listed(
            ConfigStruct("v1.PriorityPolicy", {"name": STRING, "weight": INT64, "argument": _PRIORITY_ARGUMENT})
        ),
        "extenders": Listed(_EXTENDER),
        "hardPodAffinitySymmetricWeight": INT32,
        "alwaysCheckAllPredicates": BOOL,
    },
)


def provided_config(provider: str, *, capabilities: Capabilities = IN_TREE, gates: Gates = DEFAULT_GATES) -> KubeConfig:
    """The configuration that `--algorithm-provider` named: the default one, for clusters that are kept small with nodes
    filled one after the other."""
    if provider not in ALGORITHM_PROVIDERS:
        hint = f"there are {' and '.join(ALGORITHM_PROVIDERS)}"
        raise ConfigError(f'algorithm provider "{provider}" is not registered', hint=hint)
    document: Doc = {"apiVersion": API_VERSION, "kind": KIND}
    if strategy := ALGORITHM_PROVIDERS[provider]:
        args = {"scoringStrategy": {"type": strategy}}
        document["profiles"] = [{"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}]
    return kube_config_from(document, capabilities=capabilities, gates=gates)


def read_policy(
    path: str | pathlib.Path, *, capabilities: Capabilities = IN_TREE, gates: Gates = DEFAULT_GATES
) -> KubeConfig:
    return load_policy(read_text(path), file=str(path), capabilities=capabilities, gates=gates)


def load_policy(
    text: str, *, file: str = "", capabilities: Capabilities = IN_TREE, gates: Gates = DEFAULT_GATES
) -> KubeConfig:
    """A configuration from the text of a Policy, JSON or YAML, or of a ConfigMap that holds one."""
    return policy_from(parse_source(text, file), capabilities=capabilities, gates=gates)


def policy_from_config_map(
    config_map: Doc, *, capabilities: Capabilities = IN_TREE, gates: Gates = DEFAULT_GATES
) -> KubeConfig:
    """A configuration from a ConfigMap document with the key `policy.cfg`."""
    return policy_from(Source(file="", value=config_map), capabilities=capabilities, gates=gates)


def policy_from(source: Source, *, capabilities: Capabilities, gates: Gates) -> KubeConfig:
    if isinstance(source.value, dict) and source.value.get("kind") == "ConfigMap":
        source = _inside_config_map(source)
    problems = ConfigProblems(source)
    _check_kind(source, problems)
    decoder = Decoder(problems)
    decoded = decoder.decode(POLICY, source.value)
    note_duplicates(source, problems)
    note_unknown_fields(decoder, problems)
    problems.raise_if_any()
    translation = _Translation(decoded, problems)
    document = translation.document()
    problems.raise_if_any()
    translated = Source(file=source.file, value=document, lines=source.lines)
    config = configuration_from(translated, capabilities=capabilities, gates=gates)
    return replace(config, notices=(*translation.notices, *config.notices))


def _inside_config_map(source: Source) -> Source:
    meta = source.value.get("metadata") or {}
    name = f"{meta.get('namespace', 'kube-system')}/{meta.get('name', '')}"
    text = (source.value.get("data") or {}).get(CONFIG_MAP_KEY)
    if text is None:
        problems = ConfigProblems(source)
        words = f'missing policy config map value at key "{CONFIG_MAP_KEY}"'
        keys = source.value.get("data") or {}
        problems.note(CheckStage.SYNTAX, ("data",), words, hint=suggestion(CONFIG_MAP_KEY, keys), original=words)
        problems.raise_if_any()
    return parse_source(str(text), f"{source.file or name}[{CONFIG_MAP_KEY}]")


def _check_kind(source: Source, problems: ConfigProblems) -> None:
    document = source.value
    if not isinstance(document, dict):
        problems.note(CheckStage.SYNTAX, (), "invalid policy: the file is not a mapping")
    elif document.get("kind", "Policy") != "Policy":
        words = (
            f'invalid policy: no kind "{document["kind"]}" is registered for version "{document.get("apiVersion", "")}"'
        )
        problems.note(CheckStage.SYNTAX, ("kind",), words, hint='a policy has "kind: Policy" and "apiVersion: v1"')
    elif document.get("apiVersion", "v1") not in ("v1", "kubescheduler.config.k8s.io/v1"):
        words = f'invalid policy: no kind "Policy" is registered for version "{document["apiVersion"]}"'
        problems.note(CheckStage.SYNTAX, ("apiVersion",), words, hint='did you mean "v1"?')
    problems.raise_if_any()


class _Translation:
    """The translation of one Policy into plugins."""

    def __init__(self, policy: Mapping[str, Any], problems: ConfigProblems) -> None:
        self._policy = policy
        self._problems = problems
        self._sets: dict[str, list[Doc]] = {}
        self._args: dict[str, Doc] = {}
        self.notices: list[str] = []

    def document(self) -> Doc:
        self._validate()
        for point, name in (
            ("preEnqueue", "SchedulingGates"),
            ("queueSort", "PrioritySort"),
            ("postFilter", "DefaultPreemption"),
            ("preEnqueue", "DefaultPreemption"),
            ("bind", "DefaultBinder"),
        ):
            self._enable(point, name)
        self._add_predicates()
        self._add_priorities()
        if self._policy.get("alwaysCheckAllPredicates"):
            self.notices.append(
                "alwaysCheckAllPredicates: a node is reported with the first plugin that refuses it, not with all"
            )
        if self._policy.get("hardPodAffinitySymmetricWeight"):
            weight = self._policy["hardPodAffinitySymmetricWeight"]
            self._args["InterPodAffinity"] = {"hardPodAffinityWeight": weight}
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "profiles": [self._profile()],
            "extenders": [_extender(extender) for extender in self._policy.get("extenders", ())],
        }

    def _profile(self) -> Doc:
        sets: Doc = {point: {"enabled": enabled} for point, enabled in self._sets.items()}
        sets["multiPoint"] = {"disabled": [{"name": "*"}]}
        config = [{"name": name, "args": args} for name, args in self._args.items() if self._is_enabled(name)]
        return {"schedulerName": "default-scheduler", "plugins": sets, "pluginConfig": config}

    def _is_enabled(self, name: str) -> bool:
        return any(entry["name"] == name for enabled in self._sets.values() for entry in enabled)

    def _enable(self, point: str, name: str, weight: int = 0) -> None:
        """Enable a plugin. If it is listed twice, the first mention and its weight count, as in Kubernetes 1.22."""
        enabled = self._sets.setdefault(point, [])
        if all(entry["name"] != name for entry in enabled):
            enabled.append({"name": name, "weight": weight} if weight else {"name": name})

    def _enable_part(self, part: Iterable[str], name: str, weight: int = 0) -> None:
        for point in part:
            if point in IN_TREE[name]:
                self._enable(point, name, weight if point == "score" else 0)

    def _refuse(self, path: Path, words: str, hint: str = "", stage: CheckStage = CheckStage.BUILDING) -> None:
        self._problems.note(stage, path, words, hint=hint, original=words)

    # ---- predicates ----

    def _add_predicates(self) -> None:
        written = self._policy.get("predicates")
        names = set(DEFAULT_PREDICATES if written is None else MANDATORY_PREDICATES)
        for at, predicate in enumerate(written or ()):
            name = self._predicate(("predicates", at), predicate)
            if name:
                names.add(name)
        for name in PREDICATE_ORDER:
            if name in names:
                for plugin in PREDICATES[name]:
                    self._enable_part(FILTERING, plugin)

    def _predicate(self, path: Path, predicate: Mapping[str, Any]) -> str:
        name, argument = _named(predicate)
        if argument is not None and len(argument) != 1:
            words = f"exactly 1 predicate argument is required, numArgs: {len(argument)}, predicate {name}"
            self._refuse((*path, "argument"), words)
            return ""
        name = PREDICATE_ALIASES.get(name, name)
        if name in PREDICATES:
            if name in MOVED_TO_CSI:
                self.notices.append(
                    f"predicate {name}: plugin {MOVED_TO_CSI[name]} was removed, NodeVolumeLimits counts these volumes"
                )
            return name
        if name in TAINTED_CONDITIONS:
            self.notices.append(f"predicate {name}: such conditions are taints today, which TaintToleration respects")
            return "PodToleratesNodeTaints"
        removed = _removed_predicate(name, argument or {})
        if removed:
            hint = "the args of NodeAffinity have addedAffinity for such rules" if removed == "NodeLabel" else ""
            words = f'predicate "{name}" needs the plugin {removed}, which was removed from Kubernetes'
            self._refuse((*path, "name"), words, hint)
        else:
            known = (*PREDICATES, *PREDICATE_ALIASES, *TAINTED_CONDITIONS)
            self._refuse((*path, "name"), f'predicate type not found for "{name}"', suggestion(name, known))
        return ""

    # ---- priorities ----

    def _add_priorities(self) -> None:
        written = self._policy.get("priorities")
        weights = dict(DEFAULT_PRIORITIES) if written is None else self._written_priorities(written)
        self._check_one_strategy(weights)
        for name in sorted(weights):
            if name == "NodePreferAvoidPodsPriority":
                self.notices.append(
                    "priority NodePreferAvoidPodsPriority: plugin NodePreferAvoidPods was removed, "
                    "the annotation scheduler.alpha.kubernetes.io/preferAvoidPods has no effect"
                )
                continue
            self._enable_part(SCORING, PRIORITIES[name], weights[name])
            self._set_args(name)
        if weights.keys() & {"EvenPodsSpreadPriority", "SelectorSpreadPriority"}:
            system = "SelectorSpreadPriority" in weights
            self._args["PodTopologySpread"] = {"defaultingType": "System" if system else "List"}

    def _written_priorities(self, written: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        weights = {}
        for at, priority in enumerate(written):
            name = self._priority(("priorities", at), priority)
            if name:
                weights[name] = priority.get("weight", 0)
        return weights

    def _priority(self, path: Path, priority: Mapping[str, Any]) -> str:
        name, argument = _named(priority)
        if name == IGNORED_PRIORITY:
            return ""
        if argument is not None and len(argument) != 1:
            words = f"exactly 1 priority argument is required, numArgs: {len(argument)}, priority {name}"
            self._refuse((*path, "argument"), words)
            return ""
        name = PRIORITY_ALIASES.get(name, name)
        if name in PRIORITIES or name == "NodePreferAvoidPodsPriority":
            return name
        if argument and "requestedToCapacityRatioArguments" in argument:
            self._args["NodeResourcesFit"] = _ratio_args(argument["requestedToCapacityRatioArguments"])
            return "RequestedToCapacityRatio"
        removed = _removed_priority(argument or {})
        if removed:
            self.notices.append(f"priority {name}: plugin {removed} was removed, this preference has no effect")
        else:
            known = (*PRIORITIES, *PRIORITY_ALIASES, IGNORED_PRIORITY)
            self._refuse((*path, "name"), f'priority type not found for "{name}"', suggestion(name, known))
        return ""

    def _check_one_strategy(self, weights: Mapping[str, int]) -> None:
        used = [name for name in STRATEGIES if name in weights]
        if len(used) > 1:
            words = f"{' and '.join(used)} cannot be combined: NodeResourcesFit has one scoring strategy"
            self._refuse(("priorities",), words, "keep one of them")

    def _set_args(self, priority: str) -> None:
        strategy = STRATEGIES.get(priority)
        if strategy and strategy != "RequestedToCapacityRatio":
            self._args["NodeResourcesFit"] = {"scoringStrategy": {"type": strategy}}

    # ---- validation ----

    def _validate(self) -> None:
        declared: dict[str, Mapping[str, Any]] = {}
        for at, priority in enumerate(self._policy.get("priorities", ())):
            path: Path = ("priorities", at)
            if not 0 < priority.get("weight", 0) < MAX_WEIGHT:
                name = priority.get("name", "")
                words = f"priority {name} should have a positive weight applied to it or it has overflown"
                self._refuse((*path, "weight"), words, stage=CheckStage.VALIDATION)
            self._check_declared(path, priority, declared)
        symmetric = self._policy.get("hardPodAffinitySymmetricWeight", 0)
        if not 0 <= symmetric <= 100:
            words = f"Invalid value: {symmetric}: not in valid range [0-100]"
            self._problems.note(CheckStage.VALIDATION, ("hardPodAffinitySymmetricWeight",), words)

    def _check_declared(self, path: Path, priority: Mapping[str, Any], declared: dict[str, Mapping[str, Any]]) -> None:
        kinds = {
            "labelPreference": "LabelPreference",
            "serviceAntiAffinity": "ServiceAntiAffinity",
            "requestedToCapacityRatioArguments": "RequestedToCapacityRatio",
        }
        kind = next((title for field, title in kinds.items() if field in priority.get("argument", {})), "")
        earlier, name = declared.get(kind), priority.get("name", "")
        if kind and earlier is not None:
            other = earlier.get("name", "")
            if kind == "RequestedToCapacityRatio":
                words = f'priority "{name}" redeclares custom priority "{kind}", from: "{other}"'
                self._refuse(path, words, stage=CheckStage.VALIDATION)
            elif earlier.get("weight") != priority.get("weight"):
                words = f'{kind}  priority "{name}" has a different weight with "{other}"'
                self._refuse(path, words, stage=CheckStage.VALIDATION)
        declared[kind] = priority


def _named(entry: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    return entry.get("name", ""), entry.get("argument")


def _removed_predicate(name: str, argument: Mapping[str, Any]) -> str:
    if name == "CheckServiceAffinity" or "serviceAffinity" in argument:
        return "ServiceAffinity"
    return "NodeLabel" if name == "CheckNodeLabelPresence" or "labelsPresence" in argument else ""


def _removed_priority(argument: Mapping[str, Any]) -> str:
    if "serviceAntiAffinity" in argument:
        return "ServiceAffinity"
    return "NodeLabel" if "labelPreference" in argument else ""


def _ratio_args(argument: Mapping[str, Any]) -> Doc:
    ratio = {"shape": argument.get("shape", [])}
    strategy: Doc = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": ratio}
    if argument.get("resources"):
        strategy["resources"] = argument["resources"]
    return {"scoringStrategy": strategy}


def _extender(written: Mapping[str, Any]) -> Doc:
    extender = dict(written)
    if "enableHttps" in extender:
        extender["enableHTTPS"] = extender.pop("enableHttps")
    if "httpTimeout" in extender:
        extender["httpTimeout"] = f"{extender['httpTimeout']}ns"
    return extender
