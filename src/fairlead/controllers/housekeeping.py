"""The controllers that every embedded cluster runs, together as one: what a controller manager does.

They go by the names of kube-controller-manager, so that some can be left out for a real one to take over; those of
Volcano, which have nothing to do until somebody makes a Queue or a PodGroup, have `volcano-` before theirs. Owners come
before what they own, so that within one instant of virtual time a wish becomes pods in few turns. The simulated
kubelets and the scheduler are the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from fairlead.controllers.controller_group import ControllerGroup, Member
from fairlead.controllers.disruption import Disruptions
from fairlead.controllers.garbage import GarbageCollector
from fairlead.controllers.namespaces import Namespaces, ServiceAccounts
from fairlead.controllers.nodes.node_lifecycle import NodeLifecycle
from fairlead.controllers.nodes.pod_eviction import PodEviction
from fairlead.controllers.resource_quota import ResourceQuotaController
from fairlead.controllers.storage.ephemeral_volumes import EphemeralVolumes
from fairlead.controllers.storage.volume_binder import VolumeBinder
from fairlead.controllers.storage.volume_provisioner import VolumeProvisioner
from fairlead.controllers.volcano.podgroups import PodGroups
from fairlead.controllers.volcano.queues import VolcanoQueues
from fairlead.controllers.workloads.batch_job import Jobs
from fairlead.controllers.workloads.cron_job import CronJobs
from fairlead.controllers.workloads.daemon_set import DaemonSets
from fairlead.controllers.workloads.deployment import Deployments
from fairlead.controllers.workloads.replicaset import ReplicaSets, ReplicationControllers
from fairlead.controllers.workloads.stateful_set import StatefulSets
from fairlead.errors import ConfigError

if TYPE_CHECKING:
    from fairlead.model.flow import Controller, DocView
    from fairlead.model.kinds import Registry


@dataclass(frozen=True, slots=True)
class _Means:
    """What controllers are made of."""

    view: DocView
    registry: Registry | None
    announce: bool
    volcano_names: Sequence[str] = ("volcano",)


_MAKERS: Mapping[str, Callable[[_Means], Member]] = {
    "namespace-controller": lambda m: Namespaces(m.view, registry=m.registry),
    "serviceaccount-controller": lambda m: ServiceAccounts(m.view),
    "garbage-collector-controller": lambda m: GarbageCollector(m.view, registry=m.registry),
    "node-lifecycle-controller": lambda m: NodeLifecycle(m.view, announce=m.announce),
    "taint-eviction-controller": lambda m: PodEviction(m.view, announce=m.announce),
    "resourcequota-controller": lambda m: ResourceQuotaController(m.view, registry=m.registry),
    "cronjob-controller": lambda m: CronJobs(m.view, announce=m.announce),
    "deployment-controller": lambda m: Deployments(m.view, announce=m.announce),
    "replicaset-controller": lambda m: ReplicaSets(m.view, announce=m.announce),
    "replicationcontroller-controller": lambda m: ReplicationControllers(m.view, announce=m.announce),
    "statefulset-controller": lambda m: StatefulSets(m.view, announce=m.announce),
    "daemonset-controller": lambda m: DaemonSets(m.view, announce=m.announce),
    "job-controller": lambda m: Jobs(m.view, announce=m.announce),
    "ephemeral-volume-controller": lambda m: EphemeralVolumes(m.view, announce=m.announce),
    "persistentvolume-binder-controller": lambda m: VolumeBinder(m.view, announce=m.announce),
    "volume-provisioner": lambda m: VolumeProvisioner(m.view, announce=m.announce),
    "disruption-controller": lambda m: Disruptions(m.view, registry=m.registry, announce=m.announce),
    "volcano-podgroup-controller": lambda m: PodGroups(m.view, scheduler_names=m.volcano_names),
    "volcano-queue-controller": lambda m: VolcanoQueues(m.view, announce=m.announce),
}

ALL_CONTROLLERS: tuple[str, ...] = tuple(_MAKERS)
VOLCANO_CONTROLLERS: tuple[str, ...] = tuple(name for name in _MAKERS if name.startswith("volcano-"))


def choose_controllers(text: str) -> tuple[str, ...]:
    """`all`, `none` or names separated by commas; `-name` leaves one out of all. Raises ConfigError."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    chosen = {word for word in words if not word.startswith("-") and word not in ("all", "*", "none")}
    without = {word[1:] for word in words if word.startswith("-")}
    for word in sorted(chosen | without):
        if word not in _MAKERS:
            raise ConfigError(f'there is no controller "{word}"', hint=_suggestion(word))
    if "none" in words and len(words) > 1:
        raise ConfigError('"none" goes with nothing else')
    if not words or (without and not chosen) or {"all", "*"} & set(words):
        chosen = set(_MAKERS)
    if "none" in words:
        chosen = set()
    return tuple(name for name in _MAKERS if name in chosen - without)


def _suggestion(word: str) -> str:
    close = get_close_matches(word, [*_MAKERS, *(name.removesuffix("-controller") for name in _MAKERS)], n=1)
    if close:
        full = close[0] if close[0] in _MAKERS else f"{close[0]}-controller"
        return f"did you mean {full}?"
    return "one of: " + ", ".join(_MAKERS)


def housekeepers(
    view: DocView,
    *,
    registry: Registry | None = None,
    announce: bool = True,
    names: Collection[str] = ALL_CONTROLLERS,
    volcano_names: Sequence[str] = ("volcano",),
    also: Sequence[Member] = (),
) -> list[Controller]:
    """`announce` False leaves out the Events that these controllers write about what they did; `volcano_names` are the
    schedulers whose pods need PodGroups; `also` are others that shall look at the same changes with them."""
    means = _Means(view, registry, announce, volcano_names)
    members = [make(means) for name, make in _MAKERS.items() if name in names] + [*also]
    return [ControllerGroup("controller-manager", members)] if members else []
