"""The properties of accelerator cards, from the ConfigMap in which Volcano's device plugins keep them.

As in Volcano it is read once, at the start, and left out if it does not exist or cannot be read; here that is logged.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import yaml

from fairlead.config.yaml_text import load_one
from fairlead.volcano.devices.device_config import DeviceConfig
from fairlead.volcano.devices.deviceshare import CONFIG_MAP, CONFIG_NAMESPACE, DeviceShare
from fairlead.volcano.rounds.arguments import Arguments

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.volcano.config.records import VolcanoConfig

log = logging.getLogger("fairlead.config")

_FILE = "device-config.yaml"


def device_config_map(config: VolcanoConfig) -> tuple[str, str] | None:
    """The namespace and name of the ConfigMap that a configuration goes by; None if it shares no cards."""
    plugin = config.find(DeviceShare.name)
    if plugin is None:
        return None
    arguments = Arguments(plugin.arguments)
    return (
        arguments.text("deviceshare.KnownGeometriesCMNamespace") or CONFIG_NAMESPACE,
        arguments.text("deviceshare.KnownGeometriesCMName") or CONFIG_MAP,
    )


def device_config(config_map: Doc | None) -> DeviceConfig:
    """What a ConfigMap says, or what holds without one."""
    if config_map is None:
        return DeviceConfig()
    name = f"{config_map['metadata'].get('namespace', '')}/{config_map['metadata'].get('name', '')}"
    try:
        return DeviceConfig.of(load_one((config_map.get("data") or {})[_FILE]))
    except (yaml.YAMLError, KeyError, ValueError, TypeError, AttributeError) as error:
        log.warning("the ConfigMap %s cannot be used and is left out: %s: %s", name, type(error).__name__, error)
        return DeviceConfig()
