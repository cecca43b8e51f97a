"""A whole cluster in this process, live or on virtual time: the same controllers with another runtime.

    standalone     a Store with simulated kubelets, live
    simulation     the same on virtual time

The third world, a scheduler alone on somebody else's cluster, is `fairlead scheduler` (cli/scheduling.py). Nothing else
in the project knows which of the three it is in.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from fairlead.assembly.housekeeping import ALL_CONTROLLERS, housekeepers
from fairlead.cli.roles.ways import reads_koordinator
from fairlead.cluster.controllers.unattended import Unattended
from fairlead.cluster.kubelets.kubelet import Kubelet, renewal_for
from fairlead.config.yaml_text import read_yaml
from fairlead.core.model.attendance import Attendance
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.worlds import Embedded
from fairlead.volcano.jobs.installed_plugins import installed_job_plugins
from fairlead.volcano.jobs.ssh_keys import make_ssh_keys
from fairlead.volcano.records.quirks import FIXED, Quirks

if TYPE_CHECKING:
    from fairlead.cluster.controllers.workqueue import Reconciler
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.flow import Controller
    from fairlead.koordinator.descheduling.settings import DeschedulerSettings
    from fairlead.runtime.live import Clock, OnStep, OnTurn, OnWrite
    from fairlead.runtime.virtual import Latencies, VirtualClock, VirtualRuntime


def standalone(
    store: Store,
    schedulers: Sequence[Controller],
    *,
    clock: Clock | None = None,
    on_step: OnStep | None = None,
    on_write: OnWrite | None = None,
    on_turn: OnTurn | None = None,
    names: Collection[str] = ALL_CONTROLLERS,
    volcano_names: Sequence[str] = ("volcano",),
    attendance: Attendance | None = None,
    quirks: Quirks = FIXED,
    descheduler: DeschedulerSettings | None = None,
) -> LiveRuntime:
    """A whole cluster in this process: controllers (of these names), simulated kubelets and schedulers over a Store.
    A scheduler with a plugin of Koordinator's also has reports of the nodes and somebody who moves pods for
    PodMigrationJobs; `descheduler` makes such jobs itself."""
    others: list[Reconciler[Any]] = [Kubelet(store, rng=Random()), Unattended(store, attendance or Attendance())]
    if any(map(reads_koordinator, schedulers)):
        others += _for_koordinator(store, descheduler)
    keepers = housekeepers(
        store, names=names, volcano_names=volcano_names, also=others, quirks=quirks, make_keys=make_ssh_keys,
        job_plugins=installed_job_plugins(), read_yaml=read_yaml,
    )  # fmt: skip
    return LiveRuntime(
        Embedded(store), [*keepers, *schedulers], clock=clock, on_step=on_step, on_write=on_write, on_turn=on_turn
    )


def _for_koordinator(store: Store, descheduler: DeschedulerSettings | None) -> list[Reconciler[Any]]:
    """Those that a scheduler with Koordinator's plugins needs beside it. Few clusters load them."""
    from fairlead.koordinator.agents.node_agents import NodeAgents
    from fairlead.koordinator.descheduling.controller import Descheduler
    from fairlead.koordinator.descheduling.settings import DeschedulerSettings
    from fairlead.koordinator.quotas.built_in import BuiltInQuotas
    from fairlead.koordinator.quotas.profiles import QuotaProfiles

    moves = Descheduler(store, descheduler or DeschedulerSettings())
    return [NodeAgents(store), QuotaProfiles(store), BuiltInQuotas(store), moves]


def simulation(
    store: Store,
    schedulers: Sequence[Controller],
    *,
    clock: VirtualClock,
    seed: int = 0,
    latencies: Latencies | None = None,
) -> VirtualRuntime:
    """The same cluster where time passes as fast as its work allows, the same way each time."""
    from fairlead.runtime.virtual import VirtualRuntime

    controllers = [
        *housekeepers(store, read_yaml=read_yaml),
        *schedulers,
        Kubelet(store, rng=Random(seed), renew_interval=renewal_for(ALL_CONTROLLERS)),
    ]
    return VirtualRuntime(store, controllers, clock=clock, seed=seed, latencies=latencies)
