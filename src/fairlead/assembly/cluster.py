"""ClusterAssembly: the one way from what is requested to a cluster in this process, or to what joins one elsewhere.

`fairlead up`, the demo, the Harness and its pytest fixture, the laboratory, recorded stories, what-if questions, the
library and `fairlead scheduler` make their clusters here, so that a configuration means the same cluster to all of
them. A family's own command, such as `fairlead controllers`, is below this module; it makes its controllers with the
two functions that this module makes them with, `housekeepers` and the family's settings.

    SchedulerAssembly, or None ─┐                   ┌─▶ store ─▶ over ─▶ AssembledCluster ─▶ live | virtual
    names of controllers ───────┼─▶ ClusterAssembly ┤
    settings of families, seed ─┘                   └─▶ joining: what one process runs on a cluster elsewhere

Families are asked through their records: which settings their controllers and admission have (`Family.settings`), which
controllers there are and which run beside a scheduler with their plugins (`Family.controllers`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.hooks import kind_hooks
from fairlead.cluster.controllers.unattended import Unattended
from fairlead.cluster.housekeeping import ALL_CONTROLLERS, housekeepers, needed_beside
from fairlead.cluster.kubelets.kubelet import Kubelet, renewal_for
from fairlead.cluster.store.store import Store
from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.family import brought
from fairlead.core.model.attendance import Attendance
from fairlead.core.model.kinds import CONFIG_MAP

if TYPE_CHECKING:
    from fairlead.assembly.schedulers import SchedulerAssembly
    from fairlead.cluster.admission.hooks import KindHooks
    from fairlead.cluster.controllers.workqueue import Reconciler
    from fairlead.cluster.kubelets.pod_script import PodScript
    from fairlead.core.model.flow import Controller, DocView
    from fairlead.core.model.kinds import Kind
    from fairlead.runtime.live import Clock, LiveRuntime, OnStep, OnTurn, OnWrite
    from fairlead.runtime.virtual import Latencies, Perform, VirtualClock, VirtualRuntime

    Member = Reconciler[Any]


@dataclass(frozen=True, slots=True)
class ClusterParts:
    """What a caller brings for one cluster: `others` are controllers beside the usual ones, `schedulers` place pods,
    `kubelet` is in the place of the simulated ones, and `script` is what pods without annotations of their own do."""

    others: Sequence[Controller] = ()
    schedulers: Sequence[Controller] = ()
    kubelet: Member | None = None
    script: PodScript | None = None


class AssembledCluster:
    """The controllers of one cluster over its Store, to be run against the clock of the machine or on virtual time."""

    def __init__(self, assembly: ClusterAssembly, store: Store, parts: ClusterParts, attendance: Attendance) -> None:
        """`attendance` says which objects wait for somebody who is not there."""
        self.store = store
        self.attendance = attendance
        self._assembly = assembly
        self._parts = parts
        self._unattended = Unattended(store, attendance)

    @property
    def schedulers(self) -> Sequence[Controller]:
        """Those who place pods."""
        return self._parts.schedulers

    @property
    def settings(self) -> Sequence[object]:
        """The settings of families."""
        return self._assembly.settings

    @property
    def scheduler(self) -> Scheduler | None:
        """The assembly's own scheduler, or the first that a caller brought and is one of fairlead's."""
        return next((one for one in self.schedulers if isinstance(one, Scheduler)), None)

    def live(
        self,
        *,
        clock: Clock | None = None,
        on_step: OnStep | None = None,
        on_write: OnWrite | None = None,
        on_turn: OnTurn | None = None,
    ) -> LiveRuntime:
        """The cluster against the clock of the machine. The kubelets are in the controller manager's thread, so that
        each change of a pod is decoded once for all of them. They renew their Leases, which clients may look at."""
        from fairlead.runtime.live import LiveRuntime
        from fairlead.runtime.worlds import Embedded

        kubelet = self._parts.kubelet or self._kubelet()
        controllers = [*self._usual(kubelet, self._unattended), *self._parts.others, *self.schedulers]
        return LiveRuntime(
            Embedded(self.store), controllers, clock=clock, on_step=on_step, on_write=on_write, on_turn=on_turn
        )

    def virtual(
        self, clock: VirtualClock, *, latencies: Latencies | None = None, perform: Perform | None = None
    ) -> VirtualRuntime:
        """The cluster on virtual time. The kubelets step last, so that a pod that is bound in an instant is known to
        them in it."""
        from fairlead.runtime.virtual import VirtualRuntime

        kubelet = self._parts.kubelet or self._kubelet(renew_interval=renewal_for(self._assembly.names))
        controllers = [*self._usual(self._unattended), *self._parts.others, *self.schedulers, kubelet]
        return VirtualRuntime(
            self.store,
            controllers,
            clock=clock,
            seed=(self._assembly.seed or 0) + 2,
            latencies=latencies,
            perform=perform,
        )

    def _usual(self, *also: Member) -> list[Controller]:
        return self._assembly.controllers(self.store, beside=needed_beside(self.schedulers), also=also)

    def _kubelet(self, **options: Any) -> Kubelet:
        return Kubelet(self.store, rng=self._assembly.rng(1), default=self._parts.script, jobs=self.store, **options)


class ClusterAssembly:
    """What a cluster is made of, before there is one."""

    def __init__(
        self,
        schedulers: SchedulerAssembly | None = None,
        *,
        names: Collection[str] = ALL_CONTROLLERS,
        settings: Sequence[object] = (),
        seed: int | None = None,
        announce: bool = True,
    ) -> None:
        """`schedulers` None leaves scheduling to somebody else. `names` are those of the controllers that run beside
        any scheduler. `settings` of families count before those that follow from the setups. Everything random follows
        from the seed; it is the operating system's randomness if that is None. `announce` False leaves out Events."""
        self.schedulers = schedulers
        self.names = names
        setups = () if schedulers is None else schedulers.setups
        self.settings = (*settings, *(make(setups, seed) for make in brought("settings")))
        self.seed = seed
        self._announce = announce

    def hooks(self) -> Mapping[Kind, KindHooks]:
        """What admission does for single kinds, with the settings and quirks of this cluster."""
        return kind_hooks(self.settings)

    def rng(self, stream: int) -> Random:
        """The randomness of one part of the cluster: 0 is the Store, 1 the kubelets."""
        return Random() if self.seed is None else Random(self.seed + stream)

    def store(self, clock: Callable[[], float], **options: Any) -> Store:
        """An empty Store of this cluster. `options` are those of a Store."""
        return Store(**{"clock": clock, "rng": self.rng(0), "hooks": self.hooks(), **options})

    def scheduler(self, store: Store) -> Scheduler | None:
        """The scheduler of a Store, with what its ConfigMaps say."""
        if self.schedulers is None:
            return None
        config_maps = {place: store.get(CONFIG_MAP, *place) for place in self.schedulers.config_maps}
        scheduler = self.schedulers.scheduler(store, config_maps=config_maps)
        if (place := scheduler.ledger.place) is not None:
            scheduler.ledger.restore(store.get(CONFIG_MAP, *place))
        return scheduler

    def over(
        self,
        store: Store,
        *,
        schedulers: Sequence[Controller] | None = None,
        others: Sequence[Controller] = (),
        kubelet: Member | None = None,
        script: PodScript | None = None,
    ) -> AssembledCluster:
        """A cluster over a Store, with ClusterParts of the caller's. `schedulers` are in the place of the one that the
        assembly would make."""
        own = self.scheduler(store) if schedulers is None else None
        placing = list(schedulers or ()) if own is None else [own]
        before = [*others, *self.first_objects(store)]
        return AssembledCluster(self, store, ClusterParts(before, placing, kubelet, script), self._attendance(own))

    def joining(self, view: DocView) -> list[Controller]:
        """What one process runs beside its scheduler on a cluster elsewhere, which has kubelets and node agents of its
        own: the chosen controllers, and what makes the first objects of the setups."""
        return [*self.first_objects(view), *self.controllers(view)]

    def first_objects(self, view: DocView) -> list[Controller]:
        """Controllers that make what a family needs before a pod is scheduled."""
        return [] if self.schedulers is None else self.schedulers.first_objects(view)

    def controllers(
        self, view: DocView, *, beside: Collection[str] = (), also: Sequence[Member] = ()
    ) -> list[Controller]:
        """The chosen controllers and those of `beside`, as one, with members of the caller's between them."""
        return housekeepers(
            view,
            names=self.names,
            beside=beside,
            also=also,
            settings=self.settings,
            announce=self._announce,
        )

    def _attendance(self, scheduler: Scheduler | None) -> Attendance:
        """Where somebody else schedules, any name may be served."""
        if self.schedulers is None or scheduler is None:
            return Attendance()
        return Attendance(self.schedulers.scheduler_names.union(scheduler.profiles), self.schedulers.unattended)
