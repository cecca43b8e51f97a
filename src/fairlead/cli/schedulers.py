"""From a configuration file, or none, to a Scheduler."""

from __future__ import annotations

from pathlib import Path

from fairlead.config.presets import first_profile
from fairlead.engine.scheduler import Options, Scheduler


def default_scheduler(*, seed: int = 0) -> Scheduler:
    """What runs without a configuration file."""
    return Scheduler([first_profile()], Options(seed=seed))


def configured_scheduler(path: Path, *, seed: int = 0) -> Scheduler:
    """A scheduler as a KubeSchedulerConfiguration file describes it; raises ConfigError."""
    from fairlead.config.assemble import profiles_of
    from fairlead.config.loading import read_config
    from fairlead.config.registry import Registry

    registry = Registry()
    config = read_config(path, capabilities=registry.capabilities)
    options = Options(
        seed=seed,
        initial_backoff=config.pod_initial_backoff_seconds,
        max_backoff=config.pod_max_backoff_seconds,
    )
    return Scheduler(profiles_of(config, registry), options)
