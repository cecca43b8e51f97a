"""scheduler_assembly: the scheduler of a Harness, from a configuration, Volcano's file and plugin objects.

It is assembled as `fairlead up` assembles its own (config/schedulers.py), so a configuration means the same to both.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.config.gates import OWN_GATES
from fairlead.config.schedulers import SchedulerAssembly
from fairlead.engine.scheduler import Options

if TYPE_CHECKING:
    from fairlead.config.kube_records import KubeConfig
    from fairlead.config.volcano_setup import VolcanoSetup
    from fairlead.framework.plugin import Plugin
    from fairlead.model.flow import Doc


def scheduler_assembly(
    config: str | Path | Doc | None, *, volcano: str | Path | None, plugins: Sequence[Plugin], seed: int
) -> SchedulerAssembly:  # fmt: skip
    """Raises ConfigError if the configuration cannot be used."""
    return SchedulerAssembly(
        kube_config(config), volcano=_volcano(volcano), plugins=plugins, options=Options(seed=seed),
    )  # fmt: skip


def kube_config(config: str | Path | Doc | None) -> KubeConfig | None:
    """The configuration of a path or a document; None for the default one."""
    if config is None:
        return None
    from fairlead.config.loading import load_config, read_config
    from fairlead.config.registry import PluginRegistry

    capabilities = PluginRegistry().capabilities
    if isinstance(config, str | Path):
        return read_config(config, capabilities=capabilities, gates=OWN_GATES)
    import orjson

    named = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **config}
    return load_config(orjson.dumps(named).decode(), file="config", capabilities=capabilities, gates=OWN_GATES)


def _volcano(conf: str | Path | None) -> VolcanoSetup | None:
    if conf is None:
        return None
    from fairlead.config.volcano_setup import VolcanoSetup

    return VolcanoSetup(conf=str(conf))
