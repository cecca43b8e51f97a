"""From a configuration file, or none, to a Scheduler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.config.presets import first_profile
from fairlead.engine.scheduler import Options, Scheduler

if TYPE_CHECKING:
    from fairlead.model.flow import Controller, DocView

SchedulerFactory = Callable[["DocView"], "Controller"]
"""Made when there is something to look at: extenders send documents."""


def default_scheduler(*, seed: int = 0) -> Scheduler:
    """What runs without a configuration file."""
    return Scheduler([first_profile()], Options(seed=seed))


def configured_scheduler(path: Path, *, seed: int = 0) -> SchedulerFactory:
    """As a KubeSchedulerConfiguration (or a legacy Policy) describes it. A wrong file raises ConfigError here."""
    from fairlead.config.assemble import profiles_of
    from fairlead.config.extenders import extenders_of, without_what_extenders_manage
    from fairlead.config.loading import read_config
    from fairlead.config.registry import Registry

    registry = Registry()
    config = without_what_extenders_manage(read_config(path, capabilities=registry.capabilities))
    options = Options(
        seed=seed,
        initial_backoff=config.pod_initial_backoff_seconds,
        max_backoff=config.pod_max_backoff_seconds,
    )
    profiles_of(config, registry)  # so that plugins which refuse their arguments do so now
    return lambda view: Scheduler(profiles_of(config, registry, extenders=extenders_of(config, view)), options)
