"""What recordings are replayed with: the profile of a recorded configuration, the cluster of a recorded setup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.assembly.assemble import profile_from
from fairlead.assembly.cluster import ClusterAssembly
from fairlead.assembly.registry import PluginRegistry
from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.core.engine.options import Options
from fairlead.kube.config.gates import DEFAULT_GATES
from fairlead.kube.config.kube import kube_config_from

if TYPE_CHECKING:
    from fairlead.config.setup import Setup
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Doc


def recorded_profile(document: Doc, gates: frozenset[str], settings: Sequence[object] = ()) -> Profile:
    """The first profile of a recorded configuration, with the original's known bugs; plugins are new each time.
    `settings` are those of the family that was recorded."""
    registry = PluginRegistry()
    on = DEFAULT_GATES | gates
    config = kube_config_from(document, capabilities=registry.capabilities, gates=on)
    return profile_from(config.profiles[0], registry, gates=on, compatible=True, settings=settings)


def recorded_cluster(setup: Setup, names: Sequence[str], settings: Sequence[object]) -> ClusterAssembly:
    """What a cluster of one setup is made of, with these controllers. All its generators begin where they always do."""
    return ClusterAssembly(
        SchedulerAssembly(setups=[setup], options=Options(seed=1)), names=names, settings=settings, seed=0
    )
