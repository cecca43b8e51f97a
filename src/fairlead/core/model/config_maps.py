"""ConfigMaps that policies read: their texts by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.core.model.documents import EMPTY, compiler


@compiler("ConfigMap")
def compile_config_map(document: Mapping[str, Any]) -> Mapping[str, str]:
    return dict(document.get("data") or EMPTY)
