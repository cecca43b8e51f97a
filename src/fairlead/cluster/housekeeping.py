"""The list of controllers that every embedded cluster runs, together as one: what a controller manager does.

A new controller is a `Reconciler` (cluster/controllers/workqueue.py) and one line in `_BUILT_IN`, or in the record of
its family (`Family.controllers`), whose controllers come after these:

- The key is its name on the command line. It is the name in kube-controller-manager, so that a real one can take over;
  a controller of another project has that project's prefix.
- The value is its class, imported when a cluster runs it. `Reconciler.from_context` makes it with a view and with
  Events on or off; a controller that needs more (the kinds that are served, settings of its family) overrides
  `from_context`. What it then takes from ControllerContext must have a default there, because tests make contexts of a
  view alone.
- Its place counts: an owner stands before what it owns, so that one instant of virtual time takes few steps from a
  Deployment to its pods.
- It sees every change of a kind that it watches, narrowed by nothing, because all controllers of the list share their
  watches (cluster/controllers/controller_group.py).
- It writes Events with `self.event`, which knows whether they are wanted.

The simulated kubelets and the scheduler are not in the list; the caller adds them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.controller_group import ControllerGroup, Member
from fairlead.cluster.controllers.workqueue import ControllerContext
from fairlead.config.yaml_text import read_yaml
from fairlead.core.family import ControllerEntry, families, families_read, resolve
from fairlead.errors import ConfigError

if TYPE_CHECKING:
    from fairlead.core.model.flow import Controller, DocView
    from fairlead.core.model.kinds import Registry


def _entry(target: str) -> ControllerEntry:
    return ControllerEntry(f"fairlead.cluster.{target}")


_BUILT_IN: Mapping[str, ControllerEntry] = {
    "namespace-controller": _entry("controllers.namespaces:Namespaces"),
    "serviceaccount-controller": _entry("controllers.namespaces:ServiceAccounts"),
    "garbage-collector-controller": _entry("controllers.garbage:GarbageCollector"),
    "node-lifecycle-controller": _entry("kubelets.node_lifecycle:NodeLifecycle"),
    "taint-eviction-controller": _entry("kubelets.pod_eviction:PodEviction"),
    "resourcequota-controller": _entry("controllers.resource_quota:ResourceQuotaController"),
    "cronjob-controller": _entry("controllers.workloads.cron_job:CronJobs"),
    "deployment-controller": _entry("controllers.workloads.deployment:Deployments"),
    "replicaset-controller": _entry("controllers.workloads.replicaset:ReplicaSets"),
    "replicationcontroller-controller": _entry("controllers.workloads.replicaset:ReplicationControllers"),
    "statefulset-controller": _entry("controllers.workloads.stateful_set:StatefulSets"),
    "daemonset-controller": _entry("controllers.workloads.daemon_set:DaemonSets"),
    "job-controller": _entry("controllers.workloads.batch_job:Jobs"),
    "ephemeral-volume-controller": _entry("controllers.storage.ephemeral_volumes:EphemeralVolumes"),
    "resourceclaim-controller": _entry("controllers.resource_claims:ResourceClaims"),
    "persistentvolume-binder-controller": _entry("controllers.storage.volume_binder:VolumeBinder"),
    "volume-provisioner": _entry("controllers.storage.volume_provisioner:VolumeProvisioner"),
    "disruption-controller": _entry("controllers.disruption:Disruptions"),
}
_OF_FAMILIES = {name: entry for family in families() for name, entry in family.controllers.items()}
_CONTROLLERS: Mapping[str, ControllerEntry] = {
    **_BUILT_IN,
    **{name: entry for name, entry in _OF_FAMILIES.items() if not entry.with_plugins},
}

ALL_CONTROLLERS: tuple[str, ...] = tuple(_CONTROLLERS)
"""The names of all controllers that can be chosen."""


def choose_controllers(text: str) -> tuple[str, ...]:
    """`all`, `none` or names separated by commas; `-name` leaves one out of all. Raises ConfigError."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    chosen = {word for word in words if not word.startswith("-") and word not in ("all", "*", "none")}
    without = {word[1:] for word in words if word.startswith("-")}
    for word in sorted(chosen | without):
        if word not in _CONTROLLERS:
            raise ConfigError(f'there is no controller "{word}"', hint=_suggestion(word))
    if "none" in words and len(words) > 1:
        raise ConfigError('"none" cannot be combined with other names')
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


def needed_beside(schedulers: Iterable[Controller]) -> tuple[str, ...]:
    """The controllers that run `with_plugins` of these schedulers."""
    read = families_read(watch.kind for scheduler in schedulers for watch in scheduler.watches)
    return tuple(name for family in read for name, entry in family.controllers.items() if entry.with_plugins)


def housekeepers(
    view: DocView,
    *,
    registry: Registry | None = None,
    announce: bool = True,
    names: Collection[str] = ALL_CONTROLLERS,
    beside: Collection[str] = (),
    also: Sequence[Member] = (),
    settings: Sequence[object] = (),
) -> list[Controller]:
    """The chosen controllers as one. `announce` False leaves out the Events that they write about what they did;
    `beside` names those that `needed_beside` returns; `also` are controllers of the caller that shall see the same
    changes with them. `settings` are those of families."""
    context = ControllerContext(view, registry, announce, read_yaml, settings)
    members: list[Member] = [_made(entry, context) for name, entry in _CONTROLLERS.items() if name in names]
    members += also
    members += [_made(_OF_FAMILIES[name], context) for name in beside]
    return [ControllerGroup("controller-manager", members)] if members else []


def _made(entry: ControllerEntry, context: ControllerContext) -> Member:
    made: Member = resolve(entry.target).from_context(context)
    return made
