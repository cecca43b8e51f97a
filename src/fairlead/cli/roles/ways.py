"""The ways of running fairlead on a cluster, and what each of them needs there.

    second       beside kube-scheduler, for pods that name it
    default      in kube-scheduler's place
    volcano      in Volcano's place: its scheduler and its controllers in one process
    shards       several active replicas in Volcano's manner, each with nodes of its own
    controllers  Volcano's controllers alone
    koordinator  in koord-scheduler's place: a kube profile with Koordinator's plugins
    descheduler  in koord-descheduler's place, alone
    reader       commands that only look: explain, status, queue, snapshot save, bug-report, record

`extras` are rights that only some users of a way need.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.cli.roles import grants
from fairlead.cli.roles.grants import Grant, distinct, of_kinds, of_watches

if TYPE_CHECKING:
    from fairlead.core.model.flow import Controller, Watch

LOOKED_AT = ("/metrics", "/configz", "/apis/fairlead.io/*")
"""Paths of the scheduler's own port, which asks the API server who may read them."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Rights on the whole cluster, rights in the namespace of the lease, and paths that may be read."""

    cluster: tuple[Grant, ...]
    lease: tuple[Grant, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tasks:
    """What a process does on a cluster, as far as it takes rights."""

    kube: bool = False
    rounds: bool = False
    shards: bool = False
    koordinator: bool = False
    """Whether a kube profile has a plugin of Koordinator's."""
    controllers: Collection[str] = ()
    moves: bool = False
    """Whether it deschedules."""
    elects: bool = False
    asks_who: bool = False
    """Whether its port asks the API server who calls."""
    cards: bool = False
    replaces: bool = False
    keeps_evictions: bool = False

    def needs(self, watches: Iterable[Watch]) -> Needs:
        parts = [
            (self.kube or self.rounds, grants.PLACING), (self.kube, grants.KUBE), (self.rounds, grants.VOLCANO),
            (self.shards, grants.SHARDS), (self.asks_who, grants.PORT), (self.cards, grants.CARDS),
            (self.replaces, grants.REPLACING), (self.koordinator, grants.KOORDINATOR), (self.moves, grants.MOVING),
            (self.keeps_evictions, grants.EVICTIONS),
        ]  # fmt: skip
        written = [grant for wanted, rows in parts if wanted for grant in rows]
        written += [grant for name in self.controllers for grant in grants.CONTROLLERS[name]]
        return Needs(distinct([*of_watches(watches), *written]), grants.LEASE if self.elects else ())


def reads_koordinator(scheduler: Controller) -> bool:
    """Whether a scheduler has a plugin that reads Koordinator's objects."""
    from fairlead.core.model.kinds import KOORDINATOR

    return any(watch.kind in KOORDINATOR for watch in scheduler.watches)


def _kube_watches() -> Iterable[Watch]:
    from fairlead.assembly.schedulers import default_scheduler

    return default_scheduler().watches


def _volcano_watches() -> Iterable[Watch]:
    from fairlead.assembly.schedulers import SchedulerAssembly
    from fairlead.kube.config.kube import default_kube_config
    from fairlead.volcano.config.setup import VolcanoSetup

    return SchedulerAssembly(default_kube_config(), volcano=VolcanoSetup(only=True)).scheduler().watches


def _controller_watches() -> Iterable[Watch]:
    from fairlead.assembly.housekeeping import VOLCANO_CONTROLLERS, housekeepers

    nothing = _Nothing()
    return [watch for one in housekeepers(nothing, names=VOLCANO_CONTROLLERS) for watch in one.watches]


class _Nothing:
    """A view of an empty cluster."""

    def get(self, kind: object, namespace: str, name: str) -> None:
        return None

    def list(self, kind: object, namespace: str = "") -> tuple[()]:
        return ()


def _second() -> Needs:
    return Tasks(kube=True, elects=True, asks_who=True).needs(_kube_watches())


def _volcano() -> Needs:
    tasks = Tasks(rounds=True, controllers=tuple(grants.CONTROLLERS), elects=True, asks_who=True)
    return tasks.needs([*_volcano_watches(), *_controller_watches()])


def _shards() -> Needs:
    return Tasks(rounds=True, shards=True, asks_who=True).needs(_volcano_watches())


def _controllers() -> Needs:
    return Tasks(controllers=tuple(grants.CONTROLLERS), elects=True).needs(_controller_watches())


def _koordinator() -> Needs:
    from fairlead.assembly.loading import KUBE_PRESETS
    from fairlead.assembly.schedulers import SchedulerAssembly

    config = SchedulerAssembly().load(KUBE_PRESETS["koordinator"], file="koordinator")
    watches = SchedulerAssembly(config).scheduler().watches
    return Tasks(kube=True, koordinator=True, elects=True, asks_who=True).needs(watches)


def _descheduler() -> Needs:
    from fairlead.koordinator.descheduling.migration import MigrationSteps

    return Tasks(moves=True, elects=True).needs(MigrationSteps.watches)


def _reader() -> Needs:
    from fairlead.cluster.store.snapshot import SAVED
    from fairlead.core.state.object_index import WATCHED
    from fairlead.kube.replay.recorder import WATCHES

    read = of_kinds([*SAVED, *WATCHED], ["list"]) + of_watches(WATCHES)
    return Needs(distinct(grant.right for grant in read), paths=LOOKED_AT)


@dataclass(frozen=True, slots=True)
class Way:
    """`lease` is the namespace and name of the lease that it takes unless told otherwise."""

    title: str
    needs: Callable[[], Needs]
    extras: tuple[str, ...] = ()
    lease: tuple[str, str] = ("kube-system", "kube-scheduler")


WAYS: Mapping[str, Way] = {
    "second": Way("beside kube-scheduler, for pods that name it", _second, ("owners", "replacing", "evictions")),
    "default": Way("in kube-scheduler's place", _second, ("owners", "replacing", "evictions")),
    "volcano": Way("in Volcano's place, with its controllers", _volcano, ("cards", "evictions")),
    "shards": Way("several active replicas in Volcano's manner", _shards, ("cards", "evictions")),
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
    "cards": lambda: grants.CARDS,
    "replacing": lambda: grants.REPLACING,
    "evictions": lambda: grants.EVICTIONS,
}
"""Gangs by owner, shared accelerator cards, replacing bare pods that a kubelet refused, and keeping evictions in a
ConfigMap."""
