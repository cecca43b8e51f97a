"""`fairlead config` for Volcano's dialect: is the file right, which traps are in it, and what does it come to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import yaml

from fairlead.config.problems import dotted
from fairlead.config.source import Source, parse_source, read_text
from fairlead.errors import ConfigError, FairleadError
from fairlead.kube.config.document import ConfigDifference
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.config.reading import is_volcano_config, volcano_config_from
from fairlead.volcano.config.traps import Trap, traps_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.volcano.config.objects import Objects
    from fairlead.volcano.config.records import VolcanoConfig


def volcano_source(file: str) -> Source | None:
    """The file, if it is in Volcano's dialect; None for another dialect, or one that cannot be read at all."""
    if file in PRESETS:
        return parse_source(PRESETS[file], file)
    try:
        source = parse_source(read_text(file), file)
    except ConfigError:
        return None
    return source if is_volcano_config(source) else None


def check_volcano(
    source: Source, *, objects: Callable[[], Objects | None], compatible: bool = False, strict: bool = False
) -> int:
    """Prints the result, and returns the exit code. `objects` are the queues and more that are to be checked with
    it."""
    try:
        config = _usable(source, compatible=compatible)
        known = objects()
    except FairleadError as error:
        click.echo(str(error), err=True)
        return 2 if isinstance(error, ConfigError) else 1
    for notice in config.notices:
        click.echo(f"overlooked: {notice}", err=True)
    traps = traps_of(config)
    if known is not None:
        from fairlead.volcano.config.group_traps import traps_of_groups
        from fairlead.volcano.config.queue_traps import traps_of_queues
        from fairlead.volcano.config.waiting_queues import traps_of_waiting_queues

        traps += traps_of_queues(config, known.queues, known.total)
        traps += traps_of_groups(config, known.groups, known.queues, known.total)
        traps += traps_of_waiting_queues(config, known.groups, known.queues, known.total)
    for trap in traps:
        click.echo(_trap_text(config, trap))
    said = f"{len(traps)} trap{'s'[: len(traps) != 1]}" if traps else "no traps"
    plugins = ", ".join(plugin.name for plugin in config.plugins())
    also = "" if known is None else f"; with {len(known.queues)} queues and {len(known.groups)} groups"
    click.echo(f"{source.file}: fine, {said}; actions: {', '.join(config.actions)}; plugins: {plugins}{also}")
    return 1 if strict and traps else 0


def _usable(source: Source, *, compatible: bool) -> VolcanoConfig:
    """A configuration whose plugins can be made; they are made to find out."""
    from fairlead.volcano.config.build import profile_of_volcano

    config = volcano_config_from(source, compatible=compatible)
    profile_of_volcano(config)
    return config


def _trap_text(config: VolcanoConfig, trap: Trap) -> str:
    file = config.source.file if config.source is not None else ""
    if trap.path and trap.path[0] in ("queue", "podgroup"):
        where = f"{trap.path[0]} {trap.path[1]}"
    else:
        line = config.line(trap.path) if trap.path else None
        where = f"{file}:{line}" if line else file
        plugin = next((one for one in config.plugins() if one.path and trap.path[: len(one.path)] == one.path), None)
        if plugin is not None:
            where += f": {plugin.name}"
        elif trap.path:
            where += f": {dotted(trap.path)}"
    return f"{where}: {trap.what}\n    why: {trap.why}\n    fix: {trap.fix}"


# ---- effective ----


def effective_volcano(source: Source, *, output: str) -> int:
    try:
        config = volcano_config_from(source)
    except ConfigError as error:
        click.echo(str(error), err=True)
        return 2 if isinstance(error, ConfigError) else 1
    document = effective_document(config)
    if output == "json":
        click.echo(json.dumps(document, indent=2))
    elif output == "points":
        click.echo("\n".join(_points(config)))
    else:
        click.echo(yaml.safe_dump(document, sort_keys=False), nl=False)
    return 0


def effective_document(config: VolcanoConfig) -> dict[str, Any]:
    """The configuration in its own format, in one spelling; what has its default is left out."""
    tiers = []
    for tier in config.tiers:
        plugins = []
        for plugin in tier:
            entry: dict[str, Any] = {"name": plugin.name, **plugin.switches}
            plugins.append(entry | ({"arguments": dict(plugin.arguments)} if plugin.arguments else {}))
        tiers.append({"plugins": plugins})
    document: dict[str, Any] = {"actions": ", ".join(config.actions), "tiers": tiers}
    if config.configurations:
        document["configurations"] = [
            {"name": name, "arguments": dict(arguments)} for name, arguments in config.configurations.items()
        ]
    return document | ({"metrics": dict(config.metrics)} if config.metrics else {})


def _points(config: VolcanoConfig) -> Iterator[str]:
    """The plugins at each point, tier by tier."""
    from fairlead.volcano.config.build import profile_of_volcano
    from fairlead.volcano.rounds.settings import rounds_of
    from fairlead.volcano.rounds.tier_plugin import SWITCHES

    rounds = rounds_of(profile_of_volcano(config))
    width = max(map(len, SWITCHES))
    yield f"actions {', '.join(config.actions)}"
    for point in SWITCHES:
        tiers = [[one.plugin.name for one in tier if one.speaks_at(point)] for tier in rounds.tiers]
        names = " | ".join(", ".join(tier) or "-" for tier in tiers)
        yield f"  {point:<{width}}  {names}"


# ---- diff ----


def diff_volcano(before: Source, after: Source) -> list[ConfigDifference]:
    one, other = (dict(_facts(volcano_config_from(source))) for source in (before, after))
    return [
        ConfigDifference(path, one.get(path), other.get(path))
        for path in dict.fromkeys((*one, *other))
        if one.get(path) != other.get(path)
    ]


def _facts(config: VolcanoConfig) -> Iterator[tuple[str, Any]]:
    """What a configuration says, by name and not by position, so that a plugin in between changes nothing else."""
    yield "actions", ", ".join(config.actions)
    for at, tier in enumerate(config.tiers):
        yield f"tiers[{at}]", ", ".join(plugin.name for plugin in tier)
        for plugin in tier:
            yield from ((f"{plugin.name}.{switch}", value) for switch, value in plugin.switches.items())
            yield from ((f"{plugin.name}.arguments.{name}", value) for name, value in plugin.arguments.items())
    for action, arguments in config.configurations.items():
        yield from ((f"{action}.arguments.{name}", value) for name, value in arguments.items())
    yield from ((f"metrics.{name}", value) for name, value in config.metrics.items())
