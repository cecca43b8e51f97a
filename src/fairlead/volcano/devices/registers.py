"""How nodes announce their GPUs to Volcano, read into Cards.

Two kinds of nodes are known: those that offer `volcano.sh/gpu-number` and `volcano.sh/gpu-memory` (cards of equal size,
named by their numbers), and those whose annotation `volcano.sh/node-vgpu-register` lists each card.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from fairlead.volcano.devices.card_table import Card, Cards

if TYPE_CHECKING:
    from fairlead.volcano.devices.device_config import NvidiaConfig

GPU_NUMBER, GPU_MEMORY = "volcano.sh/gpu-number", "volcano.sh/gpu-memory"
MIG, HAMI_CORE = "mig", "hami-core"
_REGISTER = "volcano.sh/node-vgpu-register"
_UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"
_NEEDED = ("volcano.sh/vgpu-number", "volcano.sh/vgpu-cores", "volcano.sh/vgpu-memory")


def numbered_cards(allocatable: Mapping[str, int], annotations: Mapping[str, str]) -> Cards:
    number, memory = allocatable.get(GPU_NUMBER, 0), allocatable.get(GPU_MEMORY, 0)
    unhealthy = annotations.get(_UNHEALTHY, "").split(",")
    return Cards(
        tuple(
            Card(place, str(place), number, memory // number)
            for place in range(number)
            if GPU_MEMORY in allocatable and str(place) not in unhealthy
        )
    )


def offered_cards(allocatable: Mapping[str, int], annotations: Mapping[str, str], config: NvidiaConfig) -> Cards:
    """The cards that are registered, if their device plugin offers them too."""
    if not all(allocatable.get(name) for name in _NEEDED):
        return Cards(())
    return registered_cards(annotations.get(_REGISTER, ""), config)


@lru_cache(maxsize=16384)
def registered_cards(text: str, config: NvidiaConfig) -> Cards:
    """`uuid,count,memory,type,health,mode:...`; a node with an entry that is too short has no cards. The last card's
    mode is that of the node; a model that the configuration has no
    geometries of is shared as a whole."""
    cards, mode = [], HAMI_CORE
    for place, entry in enumerate(text.split(":") if ":" in text else ()):
        if "," not in entry:
            continue
        fields = entry.split(",")
        if len(fields) < 6:
            return Cards(())
        geometries = config.geometries_of(fields[3]) if fields[5] == MIG else None
        mode = MIG if geometries is not None else HAMI_CORE
        cards.append(Card(place, fields[0], _number(fields[1]), _number(fields[2]), fields[3], geometries or ()))
    return Cards(tuple(cards), mode, partitioned=mode == MIG)


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
