"""scheduler_assembly: the scheduler of a Harness, from a configuration, Volcano's file and plugin objects.

It is assembled as `fairlead up` assembles its own (assembly/schedulers.py), so a configuration means the same to both.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.core.engine.scheduler import Options
from fairlead.kube.config.gates import OWN_GATES

if TYPE_CHECKING:
    from fairlead.config.setup import Setup
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.model.flow import Doc
    from fairlead.kube.config.records import KubeConfig


def scheduler_assembly(
    config: str | Path | Doc | None, *, volcano: str | Path | None, plugins: Sequence[Plugin], seed: int
) -> SchedulerAssembly:
    """Raises ConfigError if the configuration cannot be used."""
    return SchedulerAssembly(
        kube_config(config),
        setups=_setups(volcano),
        plugins=plugins,
        options=Options(seed=seed),
    )


def kube_config(config: str | Path | Doc | None) -> KubeConfig | None:
    """The configuration of a path or a document; None for the default one."""
    if config is None:
        return None
    from fairlead.assembly.loading import load_config, read_config
    from fairlead.assembly.registry import PluginRegistry

    capabilities = PluginRegistry().capabilities
    if isinstance(config, str | Path):
        return read_config(config, capabilities=capabilities, gates=OWN_GATES)
    import orjson

    named = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **config}
    return load_config(orjson.dumps(named).decode(), file="config", capabilities=capabilities, gates=OWN_GATES)


def _setups(conf: str | Path | None) -> Sequence[Setup]:
    if conf is None:
        return ()
    from fairlead.volcano.config.setup import VolcanoSetup

    return (VolcanoSetup(conf=str(conf)),)
