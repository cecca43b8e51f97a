"""Job plugins by name: those that ship with fairlead; those of other packages are added by who makes the controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.volcano.jobs.job_plugins.env import EnvPlugin
from fairlead.volcano.jobs.job_plugins.hcclrank import HcclRankPlugin
from fairlead.volcano.jobs.job_plugins.mpi import MpiPlugin
from fairlead.volcano.jobs.job_plugins.pytorch import PytorchPlugin
from fairlead.volcano.jobs.job_plugins.ray import RayPlugin
from fairlead.volcano.jobs.job_plugins.ssh import SshPlugin
from fairlead.volcano.jobs.job_plugins.svc import ServicePlugin
from fairlead.volcano.jobs.job_plugins.tensorflow import TensorflowPlugin

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.volcano.jobs.job_plugins.job_plugin import JobPlugin, PluginMeans

BUILT_IN: Mapping[str, type[JobPlugin]] = {
    plugin.name: plugin
    for plugin in (
        EnvPlugin,
        ServicePlugin,
        SshPlugin,
        TensorflowPlugin,
        PytorchPlugin,
        MpiPlugin,
        RayPlugin,
        HcclRankPlugin,
    )
}


def plugins_of(job: Doc, known: Mapping[str, type[JobPlugin]], means: PluginMeans) -> Iterator[JobPlugin]:
    """The plugins that a Job requests, in the order of their names, hcclrank last: it reads what others wrote."""
    asked = job["spec"].get("plugins") or {}
    for name in sorted(asked, key=lambda name: (name == "hcclrank", name)):
        if name in known:
            yield known[name](asked[name] or (), means)
