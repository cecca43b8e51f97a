"""The controllers that every embedded cluster runs, together as one: what a controller manager does.

Owners come before what they own, so that within one instant of virtual time a wish becomes pods in few turns. The
simulated kubelets and the scheduler are the caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.controllers.batch_job import Jobs
from fairlead.controllers.committee import Committee, Member
from fairlead.controllers.deployment import Deployments
from fairlead.controllers.garbage import GarbageCollector
from fairlead.controllers.namespaces import Namespaces
from fairlead.controllers.node_lifecycle import NodeLifecycle
from fairlead.controllers.pod_eviction import PodEviction
from fairlead.controllers.replicaset import ReplicaSets, ReplicationControllers

if TYPE_CHECKING:
    from fairlead.model.flow import Controller, DocView
    from fairlead.model.kinds import Registry


def housekeepers(view: DocView, *, registry: Registry | None = None, announce: bool = True) -> list[Controller]:
    """`announce` False leaves out the Events that these controllers write about what they did."""
    members: list[Member] = [
        Namespaces(view, registry=registry),
        GarbageCollector(view, registry=registry),
        NodeLifecycle(view, announce=announce),
        PodEviction(view, announce=announce),
        Deployments(view, announce=announce),
        ReplicaSets(view, announce=announce),
        ReplicationControllers(view, announce=announce),
        Jobs(view, announce=announce),
    ]
    return [Committee("controller-manager", members)]
