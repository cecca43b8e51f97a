"""The ways of running fairlead on a cluster, and what each of them needs there.

    second       beside kube-scheduler, for pods that name it
    default      in kube-scheduler's place
    volcano      in Volcano's place: its scheduler and its controllers in one process
    both         in Volcano's place, and beside or in the place of kube-scheduler: both in one process
    shards       several active replicas with the Volcano profile, each with nodes of its own
    controllers  Volcano's controllers alone
    koordinator  in koord-scheduler's place: a kube profile with Koordinator's plugins
    descheduler  in koord-descheduler's place, alone
    reader       commands that only look: explain, status, queue, simulate, capacity, evictions, snapshot save,
                 bug-report, record

`extras` are rights that only some users of a way need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.cluster.server.asking import QUESTIONS_PATH
from fairlead.console.roles import grants
from fairlead.console.roles.grants import Grant, distinct, of_kinds, of_task, of_watches
from fairlead.console.roles.needs import Needs, Tasks, tasks_of_plugins
from fairlead.core.model.kinds import LEASE
from fairlead.volcano.family import VOLCANO_CONTROLLERS

if TYPE_CHECKING:
    from fairlead.core.model.flow import Watch

ASKED_AT = (QUESTIONS_PATH,)
LOOKED_AT = ("/metrics", "/configz", "/apis/fairlead.io/*")
"""Paths of the scheduler's own port, which asks the API server who may read them."""


def _kube_watches() -> Iterable[Watch]:
    from fairlead.assembly.schedulers import default_scheduler

    return default_scheduler().watches


def _volcano_watches() -> Iterable[Watch]:
    from fairlead.assembly.schedulers import SchedulerAssembly
    from fairlead.kube.config.kube import default_kube_config
    from fairlead.volcano.config.setup import VolcanoSetup

    return SchedulerAssembly(default_kube_config(), setups=[VolcanoSetup(only=True)]).scheduler().watches


def _controller_watches() -> Iterable[Watch]:
    from fairlead.cluster.housekeeping import housekeepers

    nothing = _Nothing()
    return [watch for one in housekeepers(nothing, names=VOLCANO_CONTROLLERS) for watch in one.watches]


class _Nothing:
    """A view of an empty cluster."""

    def get(self, kind: object, namespace: str, name: str) -> None:
        return None

    def list(self, kind: object, namespace: str = "") -> tuple[()]:
        return ()


def _second() -> Needs:
    return Tasks(places=True, kube=True, elects=True, asks_who=True).needs(_kube_watches())


def _volcano() -> Needs:
    tasks = Tasks(
        places=True, of_families=[("volcano", "rounds")], controllers=VOLCANO_CONTROLLERS, elects=True, asks_who=True
    )
    return tasks.needs([*_volcano_watches(), *_controller_watches()])


def _both() -> Needs:
    tasks = Tasks(
        places=True,
        kube=True,
        of_families=[("volcano", "rounds")],
        controllers=VOLCANO_CONTROLLERS,
        elects=True,
        asks_who=True,
    )
    return tasks.needs([*_kube_watches(), *_volcano_watches(), *_controller_watches()])


def _shards() -> Needs:
    tasks = [("volcano", "rounds"), ("volcano", "shards")]
    return Tasks(places=True, of_families=tasks, asks_who=True).needs(_volcano_watches())


def _controllers() -> Needs:
    return Tasks(controllers=VOLCANO_CONTROLLERS, elects=True).needs(_controller_watches())


def _koordinator() -> Needs:
    from fairlead.assembly.loading import presets
    from fairlead.assembly.schedulers import SchedulerAssembly

    config = SchedulerAssembly().load(presets()["koordinator"], file="koordinator")
    watches = SchedulerAssembly(config).scheduler().watches
    tasks = tasks_of_plugins(watches)
    return Tasks(places=True, kube=True, of_families=tasks, elects=True, asks_who=True).needs(watches)


def _descheduler() -> Needs:
    from fairlead.koordinator.descheduling.migration import MigrationSteps

    return Tasks(of_families=[("koordinator", "descheduling")], elects=True).needs(MigrationSteps.watches)


def _reader() -> Needs:
    from fairlead.cluster.store.snapshot import SAVED
    from fairlead.core.state.object_index import WATCHED
    from fairlead.kube.replay.recorder import WATCHES

    read = of_kinds([*SAVED, *WATCHED], ["list"]) + of_kinds([LEASE], ["get"]) + of_watches(WATCHES)
    return Needs(distinct(grant.right for grant in read), paths=LOOKED_AT, posted=ASKED_AT)


@dataclass(frozen=True, slots=True)
class Way:
    """`lease` is the namespace and name of the lease that it takes unless set otherwise."""

    title: str
    needs: Callable[[], Needs]
    extras: tuple[str, ...] = ()
    lease: tuple[str, str] = ("kube-system", "kube-scheduler")


WAYS: Mapping[str, Way] = {
    "second": Way("beside kube-scheduler, for pods that name it", _second, ("owners", "replacing", "evictions")),
    "default": Way("in kube-scheduler's place", _second, ("owners", "replacing", "evictions")),
    "volcano": Way("in Volcano's place, with its controllers", _volcano, ("cards", "evictions")),
    "both": Way(
        "in Volcano's place and beside or in the place of kube-scheduler, in one process",
        _both,
        ("owners", "cards", "replacing", "evictions"),
    ),
    "shards": Way("several active replicas with the Volcano profile", _shards, ("cards", "evictions")),
    "controllers": Way("Volcano's controllers alone", _controllers, lease=("volcano-system", "vc-controller-manager")),
    "koordinator": Way("in koord-scheduler's place", _koordinator, ("owners", "replacing", "evictions")),
    "descheduler": Way(
        "in koord-descheduler's place, alone", _descheduler, lease=("koordinator-system", "koord-descheduler")
    ),
    "reader": Way("commands that only look", _reader),
}


def _owners() -> tuple[Grant, ...]:
    from fairlead.core.model.owner_sizes import OWNERS

    return tuple(Grant(group, f"{kind.lower()}s", verb) for group, kind in OWNERS for verb in ("list", "watch"))


EXTRAS: Mapping[str, Callable[[], tuple[Grant, ...]]] = {
    "owners": _owners,
    "cards": lambda: of_task("volcano", "cards"),
    "replacing": lambda: grants.REPLACING,
    "evictions": lambda: grants.EVICTIONS,
}
"""Gangs by owner, shared accelerator cards, replacing bare pods that a kubelet refused, and keeping evictions in a
ConfigMap."""
