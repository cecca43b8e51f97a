"""The list of controllers that every embedded cluster runs, together as one: what a controller manager does.

A new controller is a `Reconciler` (cluster/controllers/workqueue.py) and one line in `_CONTROLLERS`:

- The key is its name on the command line. It is the name in kube-controller-manager, so that a real one can take over;
  controllers of Volcano have the prefix `volcano-`, by which `fairlead scheduler` finds them, and that of
  scheduler-plugins has its project's.
- The value is its class. `Reconciler.from_context` makes it with a view and with Events on or off; a controller that
  needs more (the kinds that are served, the names of schedulers) overrides `from_context`. What it then takes from
  ControllerContext must have a default there, because tests make contexts of a view alone.
- Its place counts: an owner stands before what it owns, so that one instant of virtual time takes few steps from a
  Deployment to its pods.
- It sees every change of a kind that it watches, narrowed by nothing, because all controllers of the list share their
  watches (cluster/controllers/controller_group.py).
- It writes Events with `self.event`, which knows whether they are wanted.

The simulated kubelets and the scheduler are not in the list; the caller adds them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from fairlead.cluster.controllers.controller_group import ControllerGroup, Member
from fairlead.cluster.controllers.disruption import Disruptions
from fairlead.cluster.controllers.garbage import GarbageCollector
from fairlead.cluster.controllers.namespaces import Namespaces, ServiceAccounts
from fairlead.cluster.controllers.resource_claims import ResourceClaims
from fairlead.cluster.controllers.resource_quota import ResourceQuotaController
from fairlead.cluster.controllers.storage.ephemeral_volumes import EphemeralVolumes
from fairlead.cluster.controllers.storage.volume_binder import VolumeBinder
from fairlead.cluster.controllers.storage.volume_provisioner import VolumeProvisioner
from fairlead.cluster.controllers.workloads.batch_job import Jobs
from fairlead.cluster.controllers.workloads.cron_job import CronJobs
from fairlead.cluster.controllers.workloads.daemon_set import DaemonSets
from fairlead.cluster.controllers.workloads.deployment import Deployments
from fairlead.cluster.controllers.workloads.replicaset import ReplicaSets, ReplicationControllers
from fairlead.cluster.controllers.workloads.stateful_set import StatefulSets
from fairlead.cluster.controllers.workqueue import ControllerContext
from fairlead.cluster.kubelets.node_lifecycle import NodeLifecycle
from fairlead.cluster.kubelets.pod_eviction import PodEviction
from fairlead.errors import ConfigError
from fairlead.kube.gangs.coscheduling_groups import CoschedulingGroups
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.flows.cron import VolcanoCronJobs
from fairlead.volcano.flows.flows import JobFlows, JobTemplates
from fairlead.volcano.jobs.job_garbage import VolcanoJobGarbage
from fairlead.volcano.jobs.jobs import VolcanoJobs
from fairlead.volcano.jobs.podgroups import PodGroups
from fairlead.volcano.queues.controller import VolcanoQueues
from fairlead.volcano.records.keys import KeyPair, no_keys
from fairlead.volcano.records.quirks import FIXED, Quirks
from fairlead.volcano.sharding.controller import ShardingController
from fairlead.volcano.topology.controller import HyperNodeDiscovery

if TYPE_CHECKING:
    from fairlead.core.model.flow import Controller, DocView
    from fairlead.core.model.kinds import Registry
    from fairlead.volcano.jobs.job_plugins.job_plugin import JobPlugin

_CONTROLLERS: Mapping[str, type[Member]] = {
    "namespace-controller": Namespaces,
    "serviceaccount-controller": ServiceAccounts,
    "garbage-collector-controller": GarbageCollector,
    "node-lifecycle-controller": NodeLifecycle,
    "taint-eviction-controller": PodEviction,
    "resourcequota-controller": ResourceQuotaController,
    "cronjob-controller": CronJobs,
    "deployment-controller": Deployments,
    "replicaset-controller": ReplicaSets,
    "replicationcontroller-controller": ReplicationControllers,
    "statefulset-controller": StatefulSets,
    "daemonset-controller": DaemonSets,
    "job-controller": Jobs,
    "ephemeral-volume-controller": EphemeralVolumes,
    "resourceclaim-controller": ResourceClaims,
    "persistentvolume-binder-controller": VolumeBinder,
    "volume-provisioner": VolumeProvisioner,
    "disruption-controller": Disruptions,
    "scheduler-plugins-podgroup-controller": CoschedulingGroups,
    "volcano-podgroup-controller": PodGroups,
    "volcano-queue-controller": VolcanoQueues,
    "volcano-cronjob-controller": VolcanoCronJobs,
    "volcano-jobflow-controller": JobFlows,
    "volcano-jobtemplate-controller": JobTemplates,
    "volcano-job-controller": VolcanoJobs,
    "volcano-gc-controller": VolcanoJobGarbage,
    "volcano-hypernode-controller": HyperNodeDiscovery,
    "volcano-sharding-controller": ShardingController,
}

ALL_CONTROLLERS: tuple[str, ...] = tuple(_CONTROLLERS)
VOLCANO_CONTROLLERS: tuple[str, ...] = tuple(name for name in _CONTROLLERS if name.startswith("volcano-"))


def choose_controllers(text: str) -> tuple[str, ...]:
    """`all`, `none` or names separated by commas; `-name` leaves one out of all. Raises ConfigError."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    chosen = {word for word in words if not word.startswith("-") and word not in ("all", "*", "none")}
    without = {word[1:] for word in words if word.startswith("-")}
    for word in sorted(chosen | without):
        if word not in _CONTROLLERS:
            raise ConfigError(f'there is no controller "{word}"', hint=_suggestion(word))
    if "none" in words and len(words) > 1:
        raise ConfigError('"none" goes with nothing else')
    if not words or (without and not chosen) or {"all", "*"} & set(words):
        chosen = set(_CONTROLLERS)
    if "none" in words:
        chosen = set()
    return tuple(name for name in _CONTROLLERS if name in chosen - without)


def _suggestion(word: str) -> str:
    close = get_close_matches(word, [*_CONTROLLERS, *(name.removesuffix("-controller") for name in _CONTROLLERS)], n=1)
    if close:
        full = close[0] if close[0] in _CONTROLLERS else f"{close[0]}-controller"
        return f"did you mean {full}?"
    return "one of: " + ", ".join(_CONTROLLERS)


def housekeepers(
    view: DocView,
    *,
    registry: Registry | None = None,
    announce: bool = True,
    names: Collection[str] = ALL_CONTROLLERS,
    volcano_names: Sequence[str] = ("volcano",),
    also: Sequence[Member] = (),
    quirks: Quirks = FIXED,
    make_keys: Callable[[], KeyPair] = no_keys,
    job_plugins: Mapping[str, type[JobPlugin]] | None = None,
    read_yaml: Callable[[str], Any] = json.loads,
    volcano: VolcanoSettings | None = None,
) -> list[Controller]:
    """The chosen controllers as one. `announce` False leaves out the Events that they write about what they did;
    `volcano_names` are the schedulers whose pods need PodGroups; `also` are controllers of the caller that shall see
    the same changes with them. Of Volcano's Jobs: `quirks` are the behaviours of the original that are kept,
    `make_keys` makes ssh keys, and `job_plugins` are plugins beside those that ship with fairlead. `read_yaml` reads
    ConfigMaps of Volcano's controllers, and `volcano` is what their flags say."""
    context = ControllerContext(
        view,
        registry,
        announce,
        volcano_names,
        quirks,
        make_keys,
        job_plugins or {},
        read_yaml,
        volcano or VolcanoSettings(),
    )
    members = [controller.from_context(context) for name, controller in _CONTROLLERS.items() if name in names]
    members += also
    return [ControllerGroup("controller-manager", members)] if members else []
