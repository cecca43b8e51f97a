"""Reading kube-scheduler's configuration, in any of its formats, into a KubeConfig. The `kind` decides the format."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.config.source import parse_source, read_text
from fairlead.core.family import families, resolve
from fairlead.kube.config.gates import DEFAULT_GATES, Gates
from fairlead.kube.config.kube import configuration_from
from fairlead.kube.config.plugin_sets import IN_TREE, Capabilities
from fairlead.kube.config.policy import policy_from

if TYPE_CHECKING:
    from fairlead.kube.config.records import KubeConfig

POLICY_KINDS = ("Policy", "ConfigMap")


def presets() -> Mapping[str, str]:
    """The texts of configurations that come with families, by the name that `--config` takes."""
    return {name: text for family in families() if family.presets for name, text in resolve(family.presets).items()}


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
    """The configuration in a file, or the one that comes with fairlead under that name if there is no such file."""
    preset = presets().get(str(path)) if not pathlib.Path(path).exists() else None
    text = read_text(path, presets=presets()) if preset is None else preset
    return load_config(text, file=str(path), capabilities=capabilities, gates=gates)
