"""Profiles that are ready to use without a configuration file.

`first_profile` holds what a pod with resources, taints, affinity to nodes, ports and images needs, with
kube-scheduler's weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.framework.profile import profile_of
from fairlead.plugins.binder import DefaultBinder
from fairlead.plugins.images import ImageLocality
from fairlead.plugins.node_affinity import NodeAffinity
from fairlead.plugins.node_basics import NodeName, NodeUnschedulable, PrioritySort, SchedulingGates
from fairlead.plugins.node_ports import NodePorts
from fairlead.plugins.resources import NodeResourcesBalancedAllocation, NodeResourcesFit
from fairlead.plugins.taints import TaintToleration

if TYPE_CHECKING:
    from fairlead.framework.profile import Profile

DEFAULT_SCHEDULER = "default-scheduler"


def first_profile(name: str = DEFAULT_SCHEDULER) -> Profile:
    plugins = [
        PrioritySort(), SchedulingGates(), NodeUnschedulable(), NodeName(), TaintToleration(), NodeAffinity(),
        NodePorts(), NodeResourcesFit(), NodeResourcesBalancedAllocation(), ImageLocality(), DefaultBinder(),
    ]  # fmt: skip
    weights = {"TaintToleration": 3, "NodeAffinity": 2}
    return profile_of(name, plugins, weights=weights)
