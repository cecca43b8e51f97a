"""A policy as a SchedulerAssembly, the same as `fairlead up` makes, and plugins in Python by their names.

A plugin is named as `module:name` or `file.py:name`. The name is a Plugin, or a function that returns one or several;
a function with a parameter gets the jobs of the run, for policies that are tuned to a workload.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.assembly.loading import presets
from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.core.engine.options import Options
from fairlead.core.framework.plugin import Plugin
from fairlead.errors import ConfigError
from fairlead.kube.config.gates import OWN_GATES
from fairlead.lab.scenario.batch_policies import BATCH_POLICIES
from fairlead.testing.scheduler_choice import kube_config
from fairlead.volcano.config.options import VolcanoOptions
from fairlead.volcano.config.setup import VolcanoSetup

if TYPE_CHECKING:
    from fairlead.config.setup import Setup
    from fairlead.lab.scenario.jobs import LabJob
    from fairlead.lab.scenario.records import PolicySpec


def scheduler_name_of(policy: PolicySpec) -> str:
    """The scheduler that pods name under a policy."""
    return policy.scheduler_name or ("volcano" if policy.volcano else "default-scheduler")


def assembly_of(policy: PolicySpec, jobs: Sequence[LabJob], *, seed: int, base: Path) -> SchedulerAssembly:
    """The scheduler of a policy. Relative paths are taken from `base`. Raises ConfigError that names the policy."""
    try:
        config = policy.config
        if isinstance(config, str):
            config = config if config in presets() and not (base / config).exists() else base / config
        batch = [BATCH_POLICIES[policy.policy](jobs)] if policy.policy else []
        plugins = batch + [one for entry in policy.plugins for one in _plugins(entry, jobs, base)]
        options = Options(seed=seed, announces=False, first_of_equals=policy.ties == "first")
        return SchedulerAssembly(
            kube_config(config), setups=_setups(policy, base), plugins=plugins, options=options, gates=OWN_GATES
        )
    except ConfigError as error:
        raise ConfigError(f"policy {policy.name}: {error}") from error


def _setups(policy: PolicySpec, base: Path) -> Sequence[Setup]:
    from fairlead.volcano.config.presets import PRESETS

    if not policy.volcano:
        return ()
    conf = policy.volcano if policy.volcano in PRESETS else str(base / policy.volcano)
    names = (scheduler_name_of(policy),)
    return (VolcanoSetup(conf=conf, options=VolcanoOptions(scheduler_names=names, period=policy.period)),)


def _plugins(entry: Any, jobs: Sequence[LabJob], base: Path) -> Sequence[Plugin]:
    found = _named(entry, base) if isinstance(entry, str) else entry
    if isinstance(found, Plugin):
        return (found,)
    if not callable(found):
        raise ConfigError(f"{entry} is not a plugin", hint="a Plugin, or a function that returns one")
    takes_jobs = not inspect.isclass(found) and bool(inspect.signature(found).parameters)
    made = found(jobs) if takes_jobs else found()
    return (made,) if isinstance(made, Plugin) else tuple(made)


def _named(text: str, base: Path) -> Any:
    where, colon, name = text.rpartition(":")
    if not colon:
        raise ConfigError(f'"{text}" does not name a plugin', hint="module:name, or file.py:name")
    try:
        return getattr(_module(where, base), name)
    except (ImportError, OSError, AttributeError) as error:
        raise ConfigError(f'"{text}" cannot be imported: {error}') from error


def _module(where: str, base: Path) -> Any:
    if not where.endswith(".py"):
        return importlib.import_module(where)
    spec = importlib.util.spec_from_file_location(Path(where).stem, base / where)
    if spec is None or spec.loader is None:
        raise ImportError(f"{base / where} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
