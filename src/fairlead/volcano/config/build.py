"""From a VolcanoConfig to a Profile that works in rounds: the last step before scheduling.

Plugins are made from the catalogue, or from `module:Name`, a TierPlugin of the user's own. One that Volcano has and
fairlead has not is an error, because a rule that silently does not hold is worse than a scheduler that does not start.
A compatible configuration skips it, as Volcano skips names that it does not know.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.cel.selectors import compile_selector
from fairlead.config.factories import makes
from fairlead.config.problems import CheckStage, ConfigProblems
from fairlead.config.source import document_source
from fairlead.core.framework.profile import Profile
from fairlead.errors import ConfigError
from fairlead.kube.binder import DefaultBinder
from fairlead.kube.claims.plugin import DynamicResources
from fairlead.kube.extenders.wire import ExtenderConnection
from fairlead.kube.volumes.binding import VolumeBinding
from fairlead.volcano.config.options import VolcanoOptions
from fairlead.volcano.config.reading import load_volcano_config
from fairlead.volcano.devices.deviceshare import DeviceShare
from fairlead.volcano.devices.node_locks import NodeLock
from fairlead.volcano.plugins.catalogue import HIERARCHY, tier_plugin
from fairlead.volcano.plugins.extender import ExtenderRules, VolcanoExtender
from fairlead.volcano.plugins.predicates import Predicates
from fairlead.volcano.plugins.sla import positive_duration
from fairlead.volcano.queues.capacity import Capacity, capacity
from fairlead.volcano.rounds.action_table import ACTIONS
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.settings import Rounds, rounds_of
from fairlead.volcano.rounds.tiers import Enabled, TierPlugin

if TYPE_CHECKING:
    from fairlead.core.framework.plugin import Plugin
    from fairlead.volcano.config.records import ListedPlugin, VolcanoConfig

_EXTENDER_TIMEOUT = 1.0
_EXTENDER_BYTES = 10 * 2**20
_QUEUE_GATES = "SchedulingGatesQueueAdmission"


def profile_of_volcano(config: VolcanoConfig, options: VolcanoOptions | None = None) -> Profile:
    """The profile that a configuration describes; its plugins are new. Raises ConfigErrors."""
    options = options or VolcanoOptions()
    problems = ConfigProblems(config.source or document_source({}))
    tiers = tuple(
        tuple(enabled for plugin in tier if (enabled := _enabled(plugin, config, options, problems)) is not None)
        for tier in config.tiers
    )
    actions = _actions(config, problems)
    problems.raise_if_any()
    rounds = Rounds(
        actions,
        tiers,
        configurations=config.configurations,
        period=options.period,
        quirks=config.quirks,
        default_queue=options.default_queue,
        percentage=options.percentage_of_nodes,
        min_feasible=options.minimum_feasible_nodes,
        min_percentage=options.minimum_percentage,
        scheduler_names=tuple(options.scheduler_names),
        partition=options.partition,
        opens_queue_gates=_QUEUE_GATES in options.gates,
    )
    ignored = rounds.ignored_provisioners.union(options.ignored_provisioners)
    rounds = replace(rounds, ignored_provisioners=ignored)
    if options.slice is not None:
        rounds = replace(rounds, slice=options.slice)
    return Profile(options.scheduler_names[0], _binding_points(config, options), mode=rounds)


def recorded_rounds(text: str) -> Rounds:
    """What a recorded configuration runs, with the original's known bugs; plugins are new each time."""
    return rounds_of(profile_of_volcano(_recorded(text)))


@lru_cache(maxsize=64)
def _recorded(text: str) -> VolcanoConfig:
    return load_volcano_config(text, compatible=True)


def _actions(config: VolcanoConfig, problems: ConfigProblems) -> tuple[str, ...]:
    """Those that can run; all of them are known to the format."""
    for name in config.actions:
        if name not in ACTIONS:
            problems.note(CheckStage.BUILDING, ("actions",), f'action "{name}" is not built', original="")
    return config.actions


def _enabled(
    plugin: ListedPlugin, config: VolcanoConfig, options: VolcanoOptions, problems: ConfigProblems
) -> Enabled | None:
    try:
        made = _made(plugin, config, options)
    except ConfigError as error:
        problems.note(CheckStage.BUILDING, (*plugin.path, "name"), error.message, hint=error.hint or "", original="")
        return None
    if made is None:
        if not config.quirks.skips_missing_plugins:
            message = f'plugin "{plugin.name}" is not built'
            problems.note(CheckStage.BUILDING, (*plugin.path, "name"), message, original="")
        return None
    return Enabled(made, plugin.switches)


def _made(plugin: ListedPlugin, config: VolcanoConfig, options: VolcanoOptions) -> TierPlugin | None:
    arguments = Arguments(plugin.arguments)
    if plugin.name == VolcanoExtender.name:
        return _extender(arguments, options)
    if plugin.name == Predicates.name:
        devices = _devices(arguments)
        return Predicates.of(arguments, volumes=_volumes(arguments, config, options), devices=devices)
    if plugin.name == Capacity.name:
        return capacity(arguments, hierarchy=plugin.on(HIERARCHY, default=False), gated=_QUEUE_GATES in options.gates)
    if ":" not in plugin.name:
        return tier_plugin(plugin.name, plugin.arguments, plugin.switches, usage=options.usage, devices=options.devices)
    module_name, _, attribute = plugin.name.partition(":")
    try:
        factory = getattr(importlib.import_module(module_name), attribute)
        if not makes(factory, TierPlugin):
            raise TypeError(f"{attribute} is neither a TierPlugin class nor a function that says it returns one")
        made = _from_factory(factory, plugin.arguments)
    except Exception as error:
        message = f'plugin "{plugin.name}" cannot be made: {type(error).__name__}: {error}'
        raise ConfigError(message, hint="is the directory on the Python path?") from error
    if not isinstance(made, TierPlugin):
        raise ConfigError(f'plugin "{plugin.name}" is a {type(made).__name__} and no TierPlugin')
    made.name = made.name or plugin.name
    return made


def _extender(arguments: Arguments, options: VolcanoOptions) -> TierPlugin:
    timeout = positive_duration(arguments.text("extender.httpTimeout")) or _EXTENDER_TIMEOUT
    wire = ExtenderConnection(arguments.text("extender.urlPrefix"), timeout=timeout, most=_EXTENDER_BYTES)
    return VolcanoExtender(wire, ExtenderRules.of(arguments), options.documents)


def _from_factory(factory: Any, arguments: Mapping[str, Any]) -> Any:
    """`of(arguments)` where a class has one, as ours have; else it is called without any."""
    of = getattr(factory, "of", None)
    return of(Arguments(arguments)) if of is not None else factory()


def _volumes(arguments: Arguments, config: VolcanoConfig, options: VolcanoOptions) -> VolumeBinding:
    """What binds volumes, as the arguments of predicates say."""
    asks = options.csi_storage
    if asks is None:
        asks = not config.quirks.storage_capacity_on_request
    shape = _shape(arguments.raw("volumebinding.shape")) if "StorageCapacityScoring" in options.gates else None
    timeout = arguments.whole("volumebinding.bindTimeoutSeconds", 600)
    return VolumeBinding(bind_timeout=timeout, shape=shape, asks_drivers=asks)


def _devices(arguments: Arguments) -> DynamicResources:
    """What allocates resource claims."""
    return DynamicResources(
        compile_selector, filter_timeout=arguments.whole("dynamicresources.filterTimeoutSeconds", 10)
    )


def _shape(given: Any) -> list[tuple[int, int]]:
    """Points of utilisation and score; what is none at all counts as not given."""
    points = given if isinstance(given, list) and given else [{"utilization": 0, "score": 10}, {"utilization": 100}]
    return [(int(point.get("utilization") or 0), int(point.get("score") or 0)) for point in points]


def _binding_points(config: VolcanoConfig, options: VolcanoOptions) -> dict[str, tuple[Plugin, ...]]:
    """What happens to a placement after the round: volumes are bound, if they are looked at, the node is locked, if
    cards are given so, and then the pod is bound."""
    binder, locks = DefaultBinder(), _locks(config)
    predicates = config.find("predicates")
    if predicates is None:
        return {"pre_bind": locks, "bind": (binder,)}
    arguments = Arguments(predicates.arguments)
    reserving: tuple[Plugin, ...] = (_devices(arguments),)
    if arguments.flag("predicate.VolumeBindingEnable", default=True):
        reserving = (_volumes(arguments, config, options), *reserving)
    return {"reserve": reserving, "pre_bind": (*reserving, *locks), "bind": (binder,)}


def _locks(config: VolcanoConfig) -> tuple[Plugin, ...]:
    cards = config.find(DeviceShare.name)
    if cards is None or not Arguments(cards.arguments).flag("deviceshare.NodeLockEnable", default=False):
        return ()
    return (NodeLock(),)
