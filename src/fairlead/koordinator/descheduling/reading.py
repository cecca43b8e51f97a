"""koord-descheduler's configuration file to DeschedulerSettings, with the original's defaults and words.

Of its plugins there are LowNodeLoad and CustomPriority (balance) and MigrationController (evict and filter). A file
that enables another one is refused, and so is one without MigrationController, because nothing else evicts.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fairlead.config.problems import CheckStage, ConfigProblems, Path
from fairlead.config.shapes import Decoder, note_unknown_fields
from fairlead.config.source import Source, parse_source, read_text
from fairlead.core.model.durations import parse_duration
from fairlead.core.model.requirements import SelectorError
from fairlead.core.model.selectors import selector_from_document
from fairlead.koordinator.descheduling.limits import scaled
from fairlead.koordinator.descheduling.settings import (
    BEST_EFFORT,
    DELETE,
    DRAIN_NODE,
    EVICT_DIRECTLY,
    EVICTION,
    GATES,
    RESERVATION_FIRST,
    SOFT_EVICTION,
    AnomalyCondition,
    CustomPrioritySettings,
    DeschedulerProfile,
    DeschedulerSettings,
    LowNodeLoadSettings,
    MigrationSettings,
    NamespaceChoice,
    NodePool,
    NodeTier,
    ObjectLimiter,
)
from fairlead.koordinator.descheduling.shapes import API_VERSION, ARGS, CONFIGURATION

if TYPE_CHECKING:
    from fairlead.core.model.requirements import LabelSelector

_BALANCE = ("LowNodeLoad", "CustomPriority")
_EVICTS = "MigrationController"
_POINTS: Mapping[str, tuple[str, ...]] = {
    "deschedule": (), "balance": _BALANCE, "evict": (_EVICTS,), "filter": (_EVICTS,),
}  # fmt: skip
_DEFAULTS: Mapping[str, tuple[str, ...]] = {"evict": (_EVICTS,), "filter": (_EVICTS,)}

Fields = Mapping[str, Any]

DESCHEDULER_PRESET = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 10s
profiles:
- name: koord-descheduler
  plugins:
    balance:
      enabled:
      - name: LowNodeLoad
  pluginConfig:
  - name: MigrationController
    args:
      apiVersion: descheduler/v1alpha2
      kind: MigrationControllerArgs
      evictionPolicy: Eviction
      namespaces:
        exclude: [kube-system, koordinator-system]
  - name: LowNodeLoad
    args:
      apiVersion: descheduler/v1alpha2
      kind: LowNodeLoadArgs
      evictableNamespaces:
        exclude: [kube-system, koordinator-system]
      lowThresholds: {cpu: 45, memory: 55}
      highThresholds: {cpu: 75, memory: 80}
"""
"""Koordinator's own file, with LowNodeLoad enabled, which it only configures."""


def read_descheduler(text: str, file: str = "") -> DeschedulerSettings:
    """The settings of a file. Raises ConfigErrors, which lists all that is wrong."""
    return descheduler_from(parse_source(text, file))


def read_descheduler_file(path: pathlib.Path) -> DeschedulerSettings:
    """The settings in a file, or in the one that comes with fairlead under that name if there is no such file."""
    preset = str(path) == "koordinator" and not path.exists()
    return read_descheduler(DESCHEDULER_PRESET if preset else read_text(path), str(path))


def descheduler_from(source: Source) -> DeschedulerSettings:
    problems = ConfigProblems(source)
    document = source.value if isinstance(source.value, dict) else {}
    kind = (document.get("apiVersion"), document.get("kind"))
    if kind != (API_VERSION, "DeschedulerConfiguration"):
        hint = f"apiVersion: {API_VERSION} and kind: DeschedulerConfiguration"
        problems.note(CheckStage.TYPES, (), "not a configuration of koord-descheduler", hint=hint)
        problems.raise_if_any()
    decoder = Decoder(problems)
    fields = decoder.decode(CONFIGURATION, document)
    note_unknown_fields(decoder, problems)
    settings = _Reader(problems).settings(fields)
    problems.raise_if_any()
    return settings


class _Reader:
    """Reads decoded fields; notes what is wrong with them and goes on."""

    def __init__(self, problems: ConfigProblems) -> None:
        self._problems = problems

    def settings(self, fields: Fields) -> DeschedulerSettings:
        profiles = [
            self._profile(profile, ("profiles", at)) for at, profile in enumerate(fields.get("profiles") or [{}])
        ]
        for at, profile in enumerate(profiles):
            where = ("profiles", at)
            if any(profile.name == other.name for other in profiles[:at]):
                self._wrong((*where, "name"), f'profile "{profile.name}" is there twice', hint="name it otherwise")
            if profile.migration != profiles[0].migration:
                words = f"{_EVICTS} has other arguments than in the first profile, and one moves the pods of all"
                hint = "give it the same arguments, or run a second descheduler"
                self._wrong((*where, "pluginConfig"), words, hint=hint)
        most = (fields.get(f"maxNoOfPodsToEvict{word}") for word in ("PerNode", "PerNamespace", "Total"))
        per_node, per_namespace, in_total = most
        return DeschedulerSettings(
            interval=fields.get("deschedulingInterval", 0.0),
            dry_run=fields.get("dryRun", False),
            selector=self._selector(fields.get("nodeSelector"), ("nodeSelector",)),
            most_per_node=per_node,
            most_per_namespace=per_namespace,
            most_in_total=in_total,
            profile=profiles[0],
            others=tuple(profiles[1:]),
        )

    def _profile(self, fields: Fields, at: Path) -> DeschedulerProfile:
        written = {
            one.get("name", ""): self._args(one, (*at, "pluginConfig", place, "args"))
            for place, one in enumerate(fields.get("pluginConfig") or ())
        }
        enabled = {point: list(self._enabled(fields, point, at)) for point in _POINTS}
        for point in ("evict", "filter"):
            if _EVICTS not in enabled[point]:
                self._wrong((*at, "plugins", point), f"{_EVICTS} is missing: nothing else evicts here")
        balance: list[LowNodeLoadSettings | CustomPrioritySettings] = []
        for name in enabled["balance"]:
            args, where = written.get(name, ({}, at))
            balance.append(self._low_node_load(args, where) if name == "LowNodeLoad" else self._tiers(args, where))
        args, where = written.get(_EVICTS, ({}, at))
        return DeschedulerProfile(
            name=fields.get("name") or "koord-descheduler",
            selector=self._selector(fields.get("nodeSelector"), (*at, "nodeSelector")),
            balance=tuple(balance),
            migration=self._migration(args, where),
        )

    def _enabled(self, fields: Fields, point: str, at: Path) -> Iterator[str]:
        given = (fields.get("plugins") or {}).get(point) or {}
        disabled = {one.get("name") for one in given.get("disabled") or ()}
        wanted = [one.get("name", "") for one in given.get("enabled") or ()]
        if "*" not in disabled:
            yield from (name for name in _DEFAULTS.get(point, ()) if name not in disabled and name not in wanted)
        for place, name in enumerate(wanted):
            if name in _POINTS[point]:
                yield name
            else:
                where = (*at, "plugins", point, "enabled", place, "name")
                known = ", ".join(_POINTS[point]) or "none"
                self._wrong(where, f'plugin "{name}" is not one of those supported here ({known})')

    def _args(self, config: Fields, at: Path) -> tuple[Fields, Path]:
        shape = ARGS.get(config.get("name", ""))
        if shape is None:  # arguments of a plugin that is not enabled do no harm
            return {}, at
        decoder = Decoder(self._problems, at)
        decoded = decoder.decode(shape, config.get("args") or {}) or {}
        for path, name, hint in decoder.unknown:
            self._problems.note(CheckStage.STRICT, (*at, *path), f'unknown field "{name}"', hint=hint)
        return decoded, at

    # ---- MigrationController ----

    def _migration(self, args: Fields, at: Path) -> MigrationSettings:
        mode, policy = args.get("defaultJobMode") or RESERVATION_FIRST, args.get("evictionPolicy") or EVICTION
        if mode not in (RESERVATION_FIRST, EVICT_DIRECTLY):
            self._wrong((*at, "defaultJobMode"), f"defaultJobMode must be {RESERVATION_FIRST} or {EVICT_DIRECTLY}")
        if policy not in (EVICTION, DELETE, SOFT_EVICTION):
            self._wrong(
                (*at, "evictionPolicy"), "unsupported evicition policy", hint=f"{EVICTION}, {DELETE} or {SOFT_EVICTION}"
            )
        for place, gate in enumerate(args.get("skipEvictionGates") or ()):
            if gate not in GATES:
                self._wrong((*at, "skipEvictionGates", place), "unknown eviction gate", hint=", ".join(sorted(GATES)))
        for name in ("maxMigratingGlobally", "maxMigratingPerNode", "maxMigratingPerNamespace"):
            if args.get(name, 0) < 0:
                self._wrong((*at, name), f"{name} should be greater or equal 0")
        pace = self._number(args.get("evictQPS", 10.0), (*at, "evictQPS"))
        if pace <= 0:
            self._wrong((*at, "evictQPS"), "evictQPS must be greater than 0")
        if args.get("evictBurst", 1) <= 0:
            self._wrong((*at, "evictBurst"), "evictBurst must be greater than 0")
        arbitration = args.get("arbitrationArgs") or {}
        return MigrationSettings(
            dry_run=args.get("dryRun", False),
            failed_bare_pods=args.get("evictFailedBarePods", False),
            all_bare_pods=args.get("evictAllBarePods", False),
            local_storage_pods=args.get("evictLocalStoragePods", False),
            critical_pods=args.get("evictSystemCriticalPods", False),
            ignores_claims=args.get("ignorePvcPods", False),
            priority_below=(args.get("priorityThreshold") or {}).get("value"),
            selector=self._selector(args.get("labelSelector"), (*at, "labelSelector")),
            namespaces=self._namespaces(args.get("namespaces"), (*at, "namespaces")),
            skipped=frozenset(args.get("skipEvictionGates") or ()),
            most_globally=args.get("maxMigratingGlobally", 0),
            most_per_node=args.get("maxMigratingPerNode", 2),
            most_per_namespace=args.get("maxMigratingPerNamespace", 0),
            most_per_workload=self._share(args, "maxMigratingPerWorkload", at),
            most_unavailable=self._share(args, "maxUnavailablePerWorkload", at),
            ignores_replicas=args.get("skipCheckExpectedReplicas", False),
            limiters=self._limiters(args, at),
            mode=mode,
            ttl=args.get("defaultJobTTL", 300.0),
            schedulers=tuple(args.get("schedulerNames") or ("koord-scheduler",)),
            evictions_per_second=pace,
            evictions_at_once=args.get("evictBurst", 1),
            policy=policy,
            delete_options=args.get("defaultDeleteOptions"),
            arbitration_interval=arbitration.get("interval", 0.5),
        )

    def _number(self, value: Any, at: Path) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            self._wrong(at, f"{value!r} is no number")
            return 1.0

    def _share(self, fields: Fields, name: str, at: Path) -> int | str | None:
        """A whole number or a percentage."""
        value = fields.get(name)
        if value is None:
            return None
        try:
            if isinstance(value, bool) or not isinstance(value, int | str):
                raise ValueError(f"{value!r} is neither a number nor a percentage")
            scaled(value, 100)
        except ValueError as error:
            self._wrong((*at, name), f"{name} is invalid, err: {error}")
            return None
        return value

    def _limiters(self, args: Fields, at: Path) -> Mapping[str, ObjectLimiter]:
        written = args.get("objectLimiters") or {"workload": {"duration": "5m"}}
        found = {}
        for name, one in written.items() if isinstance(written, dict) else ():
            where = (*at, "objectLimiters", name)
            if name not in ("workload", "namespace") or not isinstance(one, dict):
                self._wrong(where, "unknown limiter", hint="workload or namespace")
                continue
            try:
                window = parse_duration(str(one.get("duration") or "0s"))
            except ValueError as error:
                self._wrong((*where, "duration"), str(error), hint="such as 5m")
                continue
            found[name] = ObjectLimiter(window, self._share(one, "maxMigrating", where), one.get("burst") or 1)
        return found

    # ---- LowNodeLoad ----

    def _low_node_load(self, args: Fields, at: Path) -> LowNodeLoadSettings:
        if args.get("numberOfNodes", 0) < 0:
            self._wrong((*at, "numberOfNodes"), "must be greater than or equal to 0")
        expiration = args.get("nodeMetricExpirationSeconds", 180)
        if expiration <= 0:
            where = (*at, "nodeMetricExpirationSeconds")
            self._wrong(where, "nodeMetricExpiredSeconds should be a positive value")
        named = {one: args.get(one) for one in ("lowThresholds", "highThresholds")}
        weights = dict.fromkeys(("cpu", "memory", *(named["lowThresholds"] or ()), *(named["highThresholds"] or ())), 1)
        weights |= {name: one for name, one in (args.get("resourceWeights") or {}).items() if one > 0}
        whole = {**args, "resourceWeights": weights, "name": "__default_node_pool__"}
        anomaly = self._anomaly(args.get("anomalyCondition") or {}, AnomalyCondition())
        pools = [self._pool(whole, {}, anomaly, at)]
        for place, one in enumerate(args.get("nodePools") or ()):
            pools.append(self._pool(one, whole, anomaly, (*at, "nodePools", place)))
        return LowNodeLoadSettings(
            paused=args.get("paused", False),
            dry_run=args.get("dryRun", False),
            number_of_nodes=args.get("numberOfNodes", 0),
            expiration=float(expiration),
            namespaces=self._namespaces(args.get("evictableNamespaces"), (*at, "evictableNamespaces")),
            selectors=self._selectors(args, at),
            node_fit=args.get("nodeFit", True),
            detector_timeout=args.get("detectorCacheTimeout", 300.0),
            pools=tuple(pools),
        )

    def _pool(self, fields: Fields, above: Fields, anomaly: AnomalyCondition, at: Path) -> NodePool:
        """A pool; thresholds, weights and condition that it does not have are those of the whole."""
        found = {}
        for name in ("lowThresholds", "highThresholds", "prodLowThresholds", "prodHighThresholds"):
            found[name] = self._thresholds(fields, above, name, at)
        low, high, prod_low, prod_high = found.values()
        least, most = "low percentage must be less than or equal to", "node percentage must be greater than or equal to"
        for where, lower, upper, words in (
            ("lowThresholds", low, high, f"{least} highThresholds"),
            ("prodHighThresholds", prod_high, high, f"{most} prodHighThresholds"),
            ("prodLowThresholds", prod_low, prod_high, f"{least} prodHighThresholds"),
        ):
            for resource, percent in lower.items():
                if resource in upper and percent > upper[resource]:
                    self._wrong((*at, where, resource), words)
        own = fields.get("anomalyCondition")
        return NodePool(
            name=fields.get("name") or "",
            selector=self._selector(fields.get("nodeSelector"), (*at, "nodeSelector")),
            by_deviation=fields.get("useDeviationThresholds", False),
            low=low,
            high=high,
            prod_low=prod_low,
            prod_high=prod_high,
            weights=fields.get("resourceWeights") or above.get("resourceWeights") or {},
            anomaly=anomaly if own is None or not above else self._anomaly(own, anomaly),
        )

    def _thresholds(self, fields: Fields, above: Fields, name: str, at: Path) -> dict[str, float]:
        written, found = fields.get(name), {}
        if written is None:
            written = above.get(name) or {}
        for resource, percent in written.items() if isinstance(written, dict) else ():
            found[resource] = self._number(percent, (*at, name, resource))
            if found[resource] < 0:
                self._wrong((*at, name, resource), "percentage must be greater than or equal to 0")
        return found

    def _anomaly(self, fields: Fields, default: AnomalyCondition) -> AnomalyCondition:
        return AnomalyCondition(
            fields.get("timeout") or default.timeout,
            fields.get("consecutiveAbnormalities") or default.abnormal,
            fields.get("consecutiveNormalities") or default.normal,
        )

    # ---- CustomPriority ----

    def _tiers(self, args: Fields, at: Path) -> CustomPrioritySettings:
        order = args.get("evictionOrder") or ()
        if len(order) < 2:
            self._wrong((*at, "evictionOrder"), "CustomPriority requires at least 2 resource priority levels")
        tiers, names = [], set()
        for place, one in enumerate(order):
            where, name = (*at, "evictionOrder", place), one.get("name") or ""
            if not name:
                self._wrong((*where, "name"), f"priority[{place}].name cannot be empty")
            if name in names:
                self._wrong((*where, "name"), f"duplicate priority name: {name}")
            names.add(name)
            selector = self._selector(one.get("nodeSelector"), (*where, "nodeSelector"))
            if selector is None:
                self._wrong((*where, "nodeSelector"), f"priority {name} must have a nodeSelector")
            else:
                tiers.append(NodeTier(name, selector))
        mode = args.get("mode") or BEST_EFFORT
        if mode not in (BEST_EFFORT, DRAIN_NODE):
            self._wrong((*at, "mode"), f"invalid mode: {mode}, supported: {BEST_EFFORT}, {DRAIN_NODE}")
        return CustomPrioritySettings(
            order=tuple(tiers),
            paused=args.get("paused", False),
            dry_run=args.get("dryRun", False),
            namespaces=self._namespaces(args.get("evictableNamespaces"), (*at, "evictableNamespaces")),
            nodes=self._selector(args.get("nodeSelector"), (*at, "nodeSelector")),
            selectors=self._selectors(args, at),
            node_fit=args.get("nodeFit", True),
            mode=mode,
            cordons=args.get("autoCordon", False),
        )

    # ---- parts of several ----

    def _selectors(self, args: Fields, at: Path) -> tuple[LabelSelector, ...]:
        listed = enumerate(args.get("podSelectors") or ())
        found = (self._selector(one.get("selector"), (*at, "podSelectors", place)) for place, one in listed)
        return tuple(one for one in found if one is not None)

    def _namespaces(self, fields: Fields | None, at: Path) -> NamespaceChoice:
        include, exclude = ((fields or {}).get(word) or () for word in ("include", "exclude"))
        if include and exclude:
            self._wrong(at, "only one of Include/Exclude namespaces can be set")
        return NamespaceChoice(frozenset(include), frozenset(exclude))

    def _selector(self, document: Any, at: Path) -> LabelSelector | None:
        if document is None:
            return None
        try:
            return selector_from_document(document)
        except (SelectorError, AttributeError, TypeError, KeyError) as error:
            self._wrong(at, f"not a label selector: {error}", hint="matchLabels and matchExpressions")
            return None

    def _wrong(self, at: Path, words: str, *, hint: str = "") -> None:
        self._problems.note(CheckStage.VALIDATION, at, words, hint=hint)
