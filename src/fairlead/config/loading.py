"""Reading kube-scheduler's configuration, in any of its formats, into a KubeConfig. The `kind` decides the format."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

from fairlead.config.gates import DEFAULT_GATES, Gates
from fairlead.config.kube import configuration_from, read_text
from fairlead.config.plugin_sets import IN_TREE, Capabilities
from fairlead.config.policy import policy_from
from fairlead.config.source import parse_source

if TYPE_CHECKING:
    from fairlead.config.kube_records import KubeConfig

POLICY_KINDS = ("Policy", "ConfigMap")


def load_config(
    text: str, *, file: str = "", capabilities: Capabilities = IN_TREE, gates: Gates = DEFAULT_GATES
) -> KubeConfig:
    """A KubeSchedulerConfiguration, a legacy Policy, or a ConfigMap with one."""
    source = parse_source(text, file)
    if isinstance(source.value, dict) and source.value.get("kind") in POLICY_KINDS:
        return policy_from(source, capabilities=capabilities, gates=gates)
    return configuration_from(source, capabilities=capabilities, gates=gates)


def read_config(
    path: str | pathlib.Path, *, capabilities: Capabilities = IN_TREE, gates: Gates = DEFAULT_GATES
) -> KubeConfig:
    return load_config(read_text(path), file=str(path), capabilities=capabilities, gates=gates)
