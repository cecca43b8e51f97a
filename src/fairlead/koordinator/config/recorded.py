"""The profile of a recorded decision: its own configuration, with the original's known bugs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.assembly.assemble import profile_from
from fairlead.assembly.registry import PluginRegistry
from fairlead.koordinator.records.quirks import KOORDINATOR_RECORDED
from fairlead.kube.config.gates import DEFAULT_GATES
from fairlead.kube.config.kube import kube_config_from

if TYPE_CHECKING:
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Doc


def recorded_koordinator(document: Doc, gates: frozenset[str]) -> Profile:
    """The first profile of a recorded configuration; plugins are new each time."""
    registry = PluginRegistry()
    on = DEFAULT_GATES | gates
    config = kube_config_from(document, capabilities=registry.capabilities, gates=on)
    return profile_from(config.profiles[0], registry, gates=on, compatible=True, quirks=KOORDINATOR_RECORDED)
