"""Settings that Volcano takes as flags. They are apart from its plugins, because every command has these flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model.usage import UsageBoard
from fairlead.volcano.devices.device_config import DeviceConfig
from fairlead.volcano.plugins.extender_bodies import Documents, no_documents
from fairlead.volcano.rounds.partition import WHOLE, Partition

if TYPE_CHECKING:
    from fairlead.kube.config.gates import Gates


@dataclass(frozen=True, slots=True)
class VolcanoOptions:
    """What Volcano takes as flags. The first scheduler name is also the profile's. On `usage` is how busy nodes are.
    `csi_storage` respects the capacity that storage drivers report; None does so unless Volcano's bugs are kept."""

    scheduler_names: Sequence[str] = ("volcano",)
    period: float = 1.0
    default_queue: str = "default"
    percentage_of_nodes: int = 0
    minimum_feasible_nodes: int = 100
    minimum_percentage: int = 5
    slice: int | None = None
    usage: UsageBoard = field(default_factory=UsageBoard)
    devices: DeviceConfig = field(default_factory=DeviceConfig)
    documents: Documents = no_documents
    partition: Partition = WHOLE
    ignored_provisioners: Sequence[str] = ()
    csi_storage: bool | None = None
    gates: Gates = frozenset()
