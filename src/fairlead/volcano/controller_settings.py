"""VolcanoSettings: what flags and the assembly say to Volcano's controllers and admission.

Fields with a flag in their text have the default of vc-controller-manager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.volcano.records.keys import KeyPair, no_keys
from fairlead.volcano.records.quirks import FIXED, Quirks

if TYPE_CHECKING:
    from fairlead.volcano.jobs.job_plugins.job_plugin import JobPlugin
    from fairlead.volcano.sharding.shard_policies import ShardConfig


@dataclass(frozen=True, slots=True)
class VolcanoSettings:
    most_tries: int = 15
    """How often work of a Job may fail before the Job is terminated; below 0 for ever (`--max-requeue-num`)."""
    inherits_annotations: bool = True
    """Whether PodGroups of plain pods get annotations of their owners (`--inherit-owner-annotations`)."""
    shards: ShardConfig | None = None
    """The schedulers among which nodes are divided where no ConfigMap says so (`--scheduler-configs`)."""
    schedulers: Sequence[str] = ("volcano",)
    """The schedulers whose pods need PodGroups."""
    quirks: Quirks = FIXED
    """Behaviours of the original that are kept."""
    all_webhooks: bool = False
    """Whether those webhooks run, too, that the original leaves off unless asked: a PodGroup's queue must be open."""
    make_keys: Callable[[], KeyPair] = no_keys
    """Makes the ssh keys of Jobs."""
    job_plugins: Mapping[str, type[JobPlugin]] = field(default_factory=dict)
    """Plugins of Jobs beside those that ship with fairlead."""
