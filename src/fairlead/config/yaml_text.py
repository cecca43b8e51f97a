"""YAML inside of objects: what controllers, which know no YAML themselves, read from ConfigMaps."""

from __future__ import annotations

from typing import Any

import yaml

from fairlead.errors import ConfigError


def read_yaml(text: str) -> Any:
    """The value that a text describes. Raises ConfigError."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"yaml: {error}") from None
