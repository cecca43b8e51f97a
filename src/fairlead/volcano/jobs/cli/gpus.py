"""GPUs among what Jobs ask for, whichever vendor's they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.core.model.quantity import parse_quantity, to_units

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

GPU = "nvidia.com/gpu"
"""What `--gpus` asks for."""
_CARDS = frozenset({"gpu", "gpu-number", "vgpu-number"})
"""Names behind the vendor's domain under which pods ask for a number of cards."""
_HUNDREDTHS = "koordinator.sh/gpu"
"""The one such name that counts hundredths of a card."""


def gpus_of(spec: Mapping[str, object]) -> str:
    """How many GPUs all pods of a Job ask for together; a dash for none."""
    tasks: list[Doc] = spec.get("tasks") or []  # type: ignore[assignment]
    total = 0.0
    for task in tasks:
        total += int(task.get("replicas") or 0) * _of_pod((task.get("template") or {}).get("spec") or {})
    return f"{total:g}" if total else "-"


def _of_pod(spec: Doc) -> float:
    return sum(_of_container(container.get("resources") or {}) for container in spec.get("containers") or ())


def _of_container(resources: Doc) -> float:
    named = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return sum(
        to_units(name, parse_quantity(amount)) / (100 if name == _HUNDREDTHS else 1)
        for name, amount in named.items()
        if name.partition("/")[2] in _CARDS
    )
