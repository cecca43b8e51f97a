"""volcano-scheduler.conf, read unchanged: text in, a VolcanoConfig out.

    actions: "enqueue, allocate, backfill"      tiers of plugins, each with switches and arguments
    configurations: arguments of the actions    metrics: where utilisation comes from

The original ignores whatever it does not know, so a misspelt key or plugin leaves a default in force without a word.
Here it is an error with the line and what was probably meant. `compatible` reads as the original does and only notes
what it overlooked; what the original refuses is refused either way.

Invariant: in a config that was not read `compatible`, every plugin, switch, argument and action is one that is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairlead.config.problems import CheckStage, ConfigProblems, Path, suggestion
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


class _Reader:
    """Reads one document. What the original refuses goes to `_problems`. What the original ignores goes to `_ignored`
    if that is kept (`ignores_unknown_settings`), else to `_problems` too."""

    def __init__(self, source: Source, quirks: Quirks) -> None:
        self._source = source
        self._quirks = quirks
        self._problems = ConfigProblems(source)
        self._ignored = ConfigProblems(source) if quirks.ignores_unknown_settings else self._problems

    def config(self) -> VolcanoConfig:
        document = self._mapping(self._source.value, ())
        self._unknown(document, TOP_KEYS, ())
        self._duplicates()
        tiers = tuple(self._tier(tier, ("tiers", at)) for at, tier in self._list(document, "tiers", ()))
        if not any(tiers):
            self._overlook(("tiers",), "no plugin is listed, so nothing is decided by any", "")
        actions = self._actions(document.get("actions"))
        configurations, metrics = self._configurations(document), self._metrics(document.get("metrics"))
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

    def _unknown(self, given: Mapping[str, Any], known: Iterable[str], path: Path) -> None:
        for key in given:
            if key not in known:
                self._overlook((*path, key), f'unknown field "{key}"', suggestion(key, known))

    def _duplicates(self) -> None:
        for path, line, first in self._source.duplicates:
            message = f'key "{path[-1]}" already set in map'
            self._ignored.note(
                CheckStage.STRICT, path, message, line=line, hint=f"first set in line {first}", original=""
            )

    # ---- types, as the original's decoder wants them ----

    def _mapping(self, value: Any, path: Path) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self._refuse(path, f"must be a mapping, got {_kind(value)}")
            return {}
        return value

    def _list(self, holder: Mapping[str, Any], key: str, path: Path) -> list[tuple[int, Any]]:
        value = holder.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self._refuse((*path, key), f"must be a list, got {_kind(value)}")
            return []
        return list(enumerate(value))

    # ---- the parts ----

    def _actions(self, value: Any) -> tuple[str, ...]:
        if value is not None and not isinstance(value, str):
            hint = 'write actions: "enqueue, allocate, backfill"' if isinstance(value, list) else ""
            self._refuse(("actions",), f"must be a text of names separated by commas, got {_kind(value)}", hint)
            return ()
        names = tuple(part.strip() for part in (value or "").split(","))
        for name, written in zip(names, (value or "").split(","), strict=True):
            if name not in ACTIONS:
                message = f'there is no action "{name}"' if name else "names no action"
                hint = suggestion(name, ACTIONS) or f"one of: {', '.join(ACTIONS)}"
                self._refuse(("actions",), message, hint, original=f"failed to find Action {written}, ignore it")
        return names

    def _tier(self, value: Any, path: Path) -> tuple[ListedPlugin, ...]:
        tier = self._mapping(value, path)
        self._unknown(tier, ("plugins",), path)
        listed = [self._plugin(one, (*path, "plugins", at)) for at, one in self._list(tier, "plugins", path)]
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

    def _plugin(self, value: Any, path: Path) -> ListedPlugin:
        plugin = self._mapping(value, path)
        name = plugin.get("name")
        name = "" if name is None else str(name)
        if not name:
            self._overlook(path, "a plugin without a name", "")
        elif name not in ARGUMENTS and ":" not in name:
            self._overlook((*path, "name"), f'there is no plugin "{name}"', suggestion(name, ARGUMENTS))
        self._unknown(plugin, ("name", "arguments", *SWITCHES), path)
        arguments = self._mapping(plugin.get("arguments"), (*path, "arguments"))
        if name in ARGUMENTS:
            for where, message, hint in misfits(arguments, ARGUMENTS[name], (*path, "arguments")):
                self._overlook(where, message, hint)
        return ListedPlugin(name, self._switches(plugin, path, name), arguments, path)

    def _switches(self, plugin: Mapping[str, Any], path: Path, name: str) -> dict[str, bool]:
        switches = {}
        for key in SWITCHES:
            value = plugin.get(key)
            if value is None:
                continue
            if not isinstance(value, bool):
                hint = "without quotes" if str(value).lower() in ("true", "false") else ""
                self._refuse((*path, key), f"must be true or false, got {_kind(value)}", hint)
                continue
            switches[key] = value
        if switches.get(HIERARCHY) and name in ARGUMENTS and name not in _HIERARCHICAL:
            message = f"{HIERARCHY} means nothing to {name}"
            self._overlook((*path, HIERARCHY), message, f"it is for {', '.join(_HIERARCHICAL)}")
        return switches

    def _configurations(self, document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """Where an action has several, the first is read."""
        made: dict[str, Mapping[str, Any]] = {}
        for at, value in self._list(document, "configurations", ()):
            path: Path = ("configurations", at)
            one = self._mapping(value, path)
            self._unknown(one, ("name", "arguments"), path)
            name = str(one.get("name") or "")
            arguments = self._mapping(one.get("arguments"), (*path, "arguments"))
            if name not in ACTIONS:
                self._overlook((*path, "name"), f'there is no action "{name}"', suggestion(name, ACTIONS))
            else:
                for where, message, hint in misfits(arguments, ACTIONS[name], (*path, "arguments")):
                    self._overlook(where, message, hint)
            made.setdefault(name, arguments)
        return made

    def _metrics(self, value: Any) -> dict[str, str]:
        metrics = self._mapping(value, ("metrics",))
        self._unknown(metrics, METRICS, ("metrics",))
        kind = metrics.get("type")
        if kind is not None and kind not in METRICS_TYPES:
            hint = suggestion(str(kind), METRICS_TYPES) or f"one of: {', '.join(METRICS_TYPES)}"
            self._overlook(("metrics", "type"), f'there is no source of metrics "{kind}"', hint)
        return {key: _text(one) for key, one in metrics.items()}


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the text "{value}"'
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, Mapping) else f"{value}"
