"""volcano-scheduler.conf, read unchanged: text in, a VolcanoConfig out.

    actions: "enqueue, allocate, backfill"      tiers of plugins, each with switches and arguments
    configurations: arguments of the actions    metrics: where utilisation comes from

The original ignores whatever it does not know, so a misspelt key or plugin leaves a default in force without a word.
Here it is an error with the line and what was probably meant. `compatible` reads as the original does and only notes
what it overlooked; what the original refuses is refused either way.

Invariant: in a config that was not read `compatible`, every plugin, switch, argument and action is one that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairlead.config.problems import CheckStage, ConfigProblems, Path, suggestion
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
    plain_text,
)
from fairlead.config.source import Source, parse_source
from fairlead.volcano.config.arguments import ACTIONS, ARGUMENTS, METRICS, METRICS_TYPES, misfits
from fairlead.volcano.config.records import HIERARCHY, ListedPlugin, VolcanoConfig
from fairlead.volcano.records.quirks import Quirks
from fairlead.volcano.rounds.tier_plugin import SWITCHES as POINT_SWITCHES

TOP_KEYS = ("actions", "tiers", "configurations", "metrics")
CONFIG_MAP_KEY = "volcano-scheduler.conf"
SWITCHES = (
    *dict.fromkeys(switch for switches in POINT_SWITCHES.values() for switch in switches),
    "enableTargetJob",
    "enableReservedNodes",
    HIERARCHY,
    "EnabledClusterOrder",
    "enabledClusterOrder",
)
"""Spelt as the format spells them, which is not consistent."""
_HIERARCHICAL = ("drf", "capacity", "nodegroup")


def _names(value: Any) -> str:
    if not isinstance(value, str):
        hint = 'write actions: "enqueue, allocate, backfill"' if isinstance(value, list) else ""
        raise WrongValue(f"must be a text of names separated by commas, got {_kind(value)}", hint)
    return value


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        hint = "without quotes" if str(value).lower() in ("true", "false") else ""
        raise WrongValue(f"must be true or false, got {_kind(value)}", hint)
    return value


_ARGUMENTS = Mapped(ANYTHING)
_PLUGIN = ConfigStruct(
    "plugin", {"name": ANYTHING, "arguments": _ARGUMENTS, **dict.fromkeys(SWITCHES, Scalar("switch", _switch))}
)
_CONFIGURATION = ConfigStruct(
    "configuration",
    {
        "actions": Scalar("names", _names),
        "tiers": Listed(ConfigStruct("tier", {"plugins": Listed(_PLUGIN)})),
        "configurations": Listed(ConfigStruct("action", {"name": ANYTHING, "arguments": _ARGUMENTS})),
        "metrics": Mapped(ANYTHING),
    },
)


def load_volcano_config(text: str, *, file: str = "", compatible: bool = False) -> VolcanoConfig:
    """The configuration in a text. Raises ConfigErrors, with all that is wrong."""
    return volcano_config_from(parse_source(text, file), compatible=compatible)


def is_volcano_config(source: Source) -> bool:
    """Whether a document is meant to be one: it has a key of this dialect, or none of the other's."""
    value = source.value
    if not isinstance(value, Mapping) or "apiVersion" in value or "kind" in value:
        return isinstance(value, Mapping) and CONFIG_MAP_KEY in (value.get("data") or {})
    return any(key in value for key in TOP_KEYS) or any(suggestion(key, TOP_KEYS) for key in map(str, value))


def volcano_config_from(source: Source, *, compatible: bool = False) -> VolcanoConfig:
    source = _inside_config_map(source)
    return _Reader(source, Quirks.of(compatible=compatible)).config()


def _inside_config_map(source: Source) -> Source:
    """The file within the ConfigMap that carries it; its lines are counted from where the text begins."""
    value = source.value
    if not isinstance(value, Mapping) or value.get("kind") != "ConfigMap":
        return source
    text = (value.get("data") or {}).get(CONFIG_MAP_KEY)
    if not isinstance(text, str):
        return source
    inner = parse_source(text, source.file)
    first = source.line(("data", CONFIG_MAP_KEY)) or 0
    inner.lines = {path: line + first for path, line in inner.lines.items()}
    inner.duplicates = [(path, line + first, before + first) for path, line, before in inner.duplicates]
    return inner


class _VolcanoDecoder(ShapeDecoder):
    """Refuses a wrong type, and overlooks an unknown field, as the original's decoder does."""

    def __init__(self, refuse: Callable[[Path, str, str], None], overlook: Callable[[Path, str, str], None]) -> None:
        super().__init__()
        self._refuse, self._overlook = refuse, overlook

    def _unknown(self, path: Path, name: Any, known: Sequence[str]) -> None:
        self._overlook(path, f'unknown field "{name}"', suggestion(name, known))

    def _misfit(self, path: Path, shape: Shape, value: Any, field: GoField, misfit: Misfit) -> None:
        wanted = "a list" if isinstance(shape, Listed) else "a mapping"
        self._refuse(path, f"must be {wanted}, got {_kind(value)}", "")

    def _wrong(self, path: Path, shape: Shape, error: ValueError) -> None:
        self._refuse(path, str(error), error.hint if isinstance(error, WrongValue) else "")


class _Reader:
    """Reads one document. What the original refuses goes to `_problems`. What the original ignores goes to `_ignored`
    if that is kept (`ignores_unknown_settings`), else to `_problems` too."""

    def __init__(self, source: Source, quirks: Quirks) -> None:
        self._source = source
        self._quirks = quirks
        self._problems = ConfigProblems(source)
        self._ignored = ConfigProblems(source) if quirks.ignores_unknown_settings else self._problems

    def config(self) -> VolcanoConfig:
        value = {} if self._source.value is None else self._source.value
        document = _VolcanoDecoder(self._refuse, self._overlook).decode(_CONFIGURATION, value) or {}
        self._duplicates()
        tiers = tuple(self._tier(tier, ("tiers", at)) for at, tier in enumerate(document.get("tiers", ())))
        if not any(tiers):
            self._overlook(("tiers",), "no plugin is listed, so nothing is decided by any", "")
        misfit = isinstance(value, Mapping) and value.get("actions") is not None and "actions" not in document
        actions = () if misfit else self._actions(document.get("actions", ""))
        configurations, metrics = self._configurations(document), self._metrics(document.get("metrics", {}))
        self._problems.raise_if_any()
        return VolcanoConfig(
            actions=actions,
            tiers=tiers,
            configurations=configurations,
            metrics=metrics,
            quirks=self._quirks,
            notices=tuple(map(str, self._ignored.errors())),
            source=self._source,
        )

    # ---- noting ----

    def _refuse(self, path: Path, message: str, hint: str = "", *, original: str | None = None) -> None:
        self._problems.note(CheckStage.VALIDATION, path, message, hint=hint, original=original)

    def _overlook(self, path: Path, message: str, hint: str) -> None:
        self._ignored.note(CheckStage.STRICT, path, message, hint=hint, original="")

    def _duplicates(self) -> None:
        for path, line, first in self._source.duplicates:
            message = f'key "{path[-1]}" already set in map'
            self._ignored.note(
                CheckStage.STRICT, path, message, line=line, hint=f"first set in line {first}", original=""
            )

    # ---- the parts ----

    def _actions(self, value: str) -> tuple[str, ...]:
        names = tuple(part.strip() for part in value.split(","))
        for name, written in zip(names, value.split(","), strict=True):
            if name not in ACTIONS:
                message = f'there is no action "{name}"' if name else "names no action"
                hint = suggestion(name, ACTIONS) or f"one of: {', '.join(ACTIONS)}"
                self._refuse(("actions",), message, hint, original=f"failed to find Action {written}, ignore it")
        return names

    def _tier(self, tier: Mapping[str, Any], path: Path) -> tuple[ListedPlugin, ...]:
        listed = [self._plugin(one, (*path, "plugins", at)) for at, one in enumerate(tier.get("plugins", ()))]
        names = [plugin.name for plugin in listed]
        for plugin in listed:
            if plugin.name == "drf" and plugin.on(HIERARCHY, default=False) and "proportion" in names:
                self._refuse(
                    plugin.path,
                    "proportion and drf with hierarchy enabled conflicts",
                    "take proportion out of this tier, or share by weight with the capacity plugin",
                    original="proportion and drf with hierarchy enabled conflicts",
                )
        return tuple(listed)

    def _plugin(self, plugin: Mapping[str, Any], path: Path) -> ListedPlugin:
        name = str(plugin.get("name", ""))
        if not name:
            self._overlook(path, "a plugin without a name", "")
        elif name not in ARGUMENTS and ":" not in name:
            self._overlook((*path, "name"), f'there is no plugin "{name}"', suggestion(name, ARGUMENTS))
        arguments = plugin.get("arguments", {})
        if name in ARGUMENTS:
            for where, message, hint in misfits(arguments, ARGUMENTS[name], (*path, "arguments")):
                self._overlook(where, message, hint)
        return ListedPlugin(name, self._switches(plugin, path, name), arguments, path)

    def _switches(self, plugin: Mapping[str, Any], path: Path, name: str) -> dict[str, bool]:
        switches = {key: plugin[key] for key in SWITCHES if key in plugin}
        if switches.get(HIERARCHY) and name in ARGUMENTS and name not in _HIERARCHICAL:
            message = f"{HIERARCHY} means nothing to {name}"
            self._overlook((*path, HIERARCHY), message, f"it is for {', '.join(_HIERARCHICAL)}")
        return switches

    def _configurations(self, document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """Where an action has several, the first is read."""
        made: dict[str, Mapping[str, Any]] = {}
        for at, one in enumerate(document.get("configurations", ())):
            path: Path = ("configurations", at)
            name, arguments = str(one.get("name") or ""), one.get("arguments", {})
            if name not in ACTIONS:
                self._overlook((*path, "name"), f'there is no action "{name}"', suggestion(name, ACTIONS))
            else:
                for where, message, hint in misfits(arguments, ACTIONS[name], (*path, "arguments")):
                    self._overlook(where, message, hint)
            made.setdefault(name, arguments)
        return made

    def _metrics(self, metrics: Mapping[str, Any]) -> dict[str, str]:
        for key in metrics:
            if key not in METRICS:
                self._overlook(("metrics", key), f'unknown field "{key}"', suggestion(key, METRICS))
        kind = metrics.get("type")
        if kind is not None and kind not in METRICS_TYPES:
            hint = suggestion(str(kind), METRICS_TYPES) or f"one of: {', '.join(METRICS_TYPES)}"
            self._overlook(("metrics", "type"), f'there is no source of metrics "{kind}"', hint)
        return {key: plain_text(one) for key, one in metrics.items()}


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the text "{value}"'
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, Mapping) else f"{value}"
