"""Tasks: what a process does on a cluster; Needs: the rights that this takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.console.roles import grants
from fairlead.console.roles.grants import PLUGINS, Grant, distinct, of_controller, of_task, of_watches
from fairlead.core.family import families_read

if TYPE_CHECKING:
    from fairlead.core.model.flow import Watch


@dataclass(frozen=True, slots=True)
class Needs:
    """Rights on the whole cluster, rights in the namespace of the lease, and paths that may be read."""

    cluster: tuple[Grant, ...]
    lease: tuple[Grant, ...] = ()
    paths: tuple[str, ...] = ()
    posted: tuple[str, ...] = ()
    """Paths to which questions may be posted, because they are too long for an address."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """What a process does on a cluster, as far as it takes rights."""

    places: bool = False
    """Whether it binds pods."""
    kube: bool = False
    """Whether it has kube profiles."""
    of_families: Sequence[tuple[str, str]] = ()
    """Names of families, each with a task that its grants know."""
    controllers: Collection[str] = ()
    """Names of controllers of families."""
    elects: bool = False
    asks_who: bool = False
    """Whether its port asks the API server who calls."""
    replaces: bool = False
    keeps_evictions: bool = False

    def needs(self, watches: Iterable[Watch]) -> Needs:
        parts = [
            (self.places, grants.PLACING),
            (self.kube, grants.KUBE),
            *((True, of_task(family, task)) for family, task in self.of_families),
            (self.asks_who, grants.PORT),
            (self.replaces, grants.REPLACING),
            (self.keeps_evictions, grants.EVICTIONS),
            *((True, of_controller(name)) for name in self.controllers),
        ]
        written = [grant for wanted, rows in parts if wanted for grant in rows]
        return Needs(distinct([*of_watches(watches), *written]), grants.LEASE if self.elects else ())


def tasks_of_plugins(watches: Iterable[Watch]) -> list[tuple[str, str]]:
    """The tasks of families with plugins in a scheduler that has these watches."""
    return [(family.name, PLUGINS) for family in families_read(watch.kind for watch in watches)]
