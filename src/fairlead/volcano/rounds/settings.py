"""Rounds: what Volcano's scheduling mode reads from a profile, whose field `mode` holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from fairlead.volcano.records.quirks import FIXED, Quirks
from fairlead.volcano.rounds.partition import WHOLE, Partition

if TYPE_CHECKING:
    from fairlead.core.framework.profile import Profile
    from fairlead.volcano.rounds.tiers import Enabled


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """Scheduling in rounds: every `period` seconds after the last one ended, `actions` run in order
    over all jobs, asking the plugins tier by tier. `configurations` are the actions' arguments.

    `quirks` are the behaviours of the original that are kept and not repaired. `slice` is the number of attempts after
    which others have a turn. `percentage`, `min_feasible` and `min_percentage` say how many nodes are looked at.
    `partition` is the part of the cluster that the rounds are about. Volumes of `ignored_provisioners` are not counted
    among what pods request. `opens_queue_gates`: the gate of pods that wait for their queue is taken away once it has
    room for them."""

    made_by: ClassVar[str] = "rounds"
    actions: tuple[str, ...]
    tiers: tuple[tuple[Enabled, ...], ...]
    configurations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    period: float = 1.0
    quirks: Quirks = FIXED
    slice: int = 64
    default_queue: str = "default"
    percentage: int = 0
    min_feasible: int = 100
    min_percentage: int = 5
    scheduler_names: tuple[str, ...] = ("volcano",)
    partition: Partition = WHOLE
    ignored_provisioners: frozenset[str] = frozenset({"rancher.io/local-path", "hostpath.csi.k8s.io"})
    opens_queue_gates: bool = False


def rounds_of(profile: Profile) -> Rounds:
    """The rounds of a profile that works in them."""
    assert isinstance(profile.mode, Rounds)
    return profile.mode
