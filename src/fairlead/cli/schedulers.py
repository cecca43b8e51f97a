"""From a configuration file, or none, to a Scheduler."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.config.gates import OWN_GATES
from fairlead.config.presets import first_profile
from fairlead.engine.scheduler import Options, Scheduler
from fairlead.model import kinds

if TYPE_CHECKING:
    from fairlead.cli.volcano_flags import VolcanoFlags
    from fairlead.config.gates import Gates
    from fairlead.framework.profile import Profile
    from fairlead.model.flow import Controller, DocView

log = logging.getLogger("fairlead.scheduler")

SchedulerFactory = Callable[["DocView"], "Controller"]
"""Made when there is something to look at: extenders send documents."""


def default_scheduler(*, seed: int = 0, gates: Gates = OWN_GATES) -> Scheduler:
    """What runs without a configuration file."""
    return Scheduler([first_profile(gates)], Options(seed=seed))


def configured_scheduler(
    path: Path | None, *, seed: int = 0, volcano: VolcanoFlags | None = None, gates: Gates = OWN_GATES
) -> SchedulerFactory:
    """As a KubeSchedulerConfiguration (or a legacy Policy) and Volcano's flags describe it; without a file, the default
    profile. A wrong file raises ConfigError here."""
    if volcano is not None:
        return _with_volcano(path, volcano, seed=seed, gates=gates)
    assert path is not None
    from fairlead.config.assemble import profiles_of
    from fairlead.config.extenders import extenders_of, without_what_extenders_manage
    from fairlead.config.loading import read_config
    from fairlead.config.registry import PluginRegistry

    registry = PluginRegistry()
    read = read_config(path, capabilities=registry.capabilities, gates=gates)
    config = without_what_extenders_manage(read)
    options = Options(
        seed=seed,
        initial_backoff=config.pod_initial_backoff_seconds,
        max_backoff=config.pod_max_backoff_seconds,
    )
    profiles_of(config, registry)  # so that plugins which refuse their arguments do so now
    return lambda view: Scheduler(profiles_of(config, registry, extenders=extenders_of(config, view)), options)


def _with_volcano(path: Path | None, volcano: VolcanoFlags, *, seed: int, gates: Gates) -> SchedulerFactory:
    """Both manners in one Scheduler, which follows Volcano's file while it runs."""
    from fairlead.cli.reloading import ReloadingScheduler
    from fairlead.config.watcher import ReloadOutcome

    config, cards = volcano.first_config(), volcano.device_config_map()

    def make(view: DocView) -> Controller:
        nonlocal volcano
        volcano = volcano.looking_at(view)
        if cards is not None:
            volcano = volcano.knowing_cards(view.get(kinds.CONFIG_MAP, *cards))
        others = [] if volcano.only else _kube_profiles(path, view, gates)
        volcano.check_names(others)
        scheduler = Scheduler([*others, volcano.profile(config)], Options(seed=seed))
        watcher = volcano.watcher(_tell)

        def look() -> None:
            if watcher is not None and watcher.look() is ReloadOutcome.CHANGED:
                kept = [] if volcano.only else _kube_profiles(path, view, gates)
                scheduler.reconfigure([*kept, volcano.profile(watcher.current)])

        return ReloadingScheduler(scheduler, view, also_look=[look])

    return make


def _tell(words: str) -> None:
    """A file that cannot be used is more than news."""
    log.log(logging.WARNING if "stays in force" in words else logging.INFO, words)


def _kube_profiles(path: Path | None, view: DocView, gates: Gates) -> list[Profile]:
    if path is None:
        return [first_profile(gates)]
    scheduler = configured_scheduler(path, gates=gates)(view)
    assert isinstance(scheduler, Scheduler)
    return list(scheduler.profiles.values())
