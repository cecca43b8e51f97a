"""Finish: what families look at when they finish a profile, and what kube-scheduler's own plugins still need then.

A configuration is read without knowing which bugs are kept, and its arguments are those of the file. A family finishes
each profile that lists one of its plugins (`Family.finish`) before the plugins are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.kube.config.gates import Gates
    from fairlead.kube.config.records import KubeProfile

_GANGS = "GangScheduling"


@dataclass(frozen=True, slots=True)
class Finish:
    """`gates` are on, `compatible` keeps known bugs of kube-scheduler, and `settings` are those of families."""

    gates: Gates
    compatible: bool = False
    settings: Sequence[object] = ()


def finish(profile: KubeProfile, context: Finish) -> KubeProfile:
    """The profile in which the plugin of gangs preempts for whole PodGroups if that feature is on."""
    written = profile.args.get(_GANGS, {})
    if not isinstance(written, Mapping):
        return profile
    preemption = "PodGroup" if "WorkloadAwarePreemption" in context.gates else "Pod"
    return replace(profile, args={**profile.args, _GANGS: {"preemption": preemption, **written}})
