"""What flags of vc-controller-manager say to Volcano's controllers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.volcano.sharding.shard_policies import ShardConfig


@dataclass(frozen=True, slots=True)
class VolcanoSettings:
    """The defaults are the original's."""

    most_tries: int = 15
    """How often work of a Job may fail before the Job is terminated; below 0 for ever (`--max-requeue-num`)."""
    inherits_annotations: bool = True
    """Whether PodGroups of plain pods get annotations of their owners (`--inherit-owner-annotations`)."""
    shards: ShardConfig | None = None
    """The schedulers among which nodes are divided where no ConfigMap says so (`--scheduler-configs`)."""
