"""The record of a Namespace: its name and the labels that namespace selectors match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.core.model.documents import EMPTY, compiler


@dataclass(frozen=True, slots=True)
class Namespace:
    name: str
    labels: Mapping[str, str]


@compiler("Namespace")
def compile_namespace(document: Mapping[str, Any]) -> Namespace:
    return Namespace(document["metadata"]["name"], document["metadata"].get("labels") or EMPTY)
