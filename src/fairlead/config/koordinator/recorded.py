"""The profile of a recorded decision: its own configuration, with the original's known bugs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.config.assemble import profile_from
from fairlead.config.gates import DEFAULT_GATES
from fairlead.config.kube import kube_config_from
from fairlead.config.registry import PluginRegistry
from fairlead.model.koordinator.quirks import KOORDINATOR_RECORDED

if TYPE_CHECKING:
    from fairlead.framework.profile import Profile
    from fairlead.model.flow import Doc


def recorded_koordinator(document: Doc, gates: frozenset[str]) -> Profile:
    """The first profile of a recorded configuration; plugins are new each time."""
    registry = PluginRegistry()
    on = DEFAULT_GATES | gates
    config = kube_config_from(document, capabilities=registry.capabilities, gates=on)
    return profile_from(config.profiles[0], registry, gates=on, compatible=True, quirks=KOORDINATOR_RECORDED)
