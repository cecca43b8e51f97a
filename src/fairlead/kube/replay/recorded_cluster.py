"""RecordedCluster: what a replay that goes on in a whole cluster is given of the ClusterAssembly, which is above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fairlead.cluster.controllers.workqueue import Reconciler
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.flow import Controller
    from fairlead.runtime.virtual import VirtualClock, VirtualRuntime


class PlayedCluster(Protocol):
    """A cluster whose controllers are known."""

    def virtual(self, clock: VirtualClock) -> VirtualRuntime: ...


class RecordedCluster(Protocol):
    """What a cluster is made of, before there is one."""

    def store(self, clock: VirtualClock) -> Store:
        """An empty Store, with the admission of the cluster."""

    def scheduler(self, store: Store) -> Controller | None: ...

    def over(self, store: Store, *, schedulers: Sequence[Controller], kubelet: Reconciler[Any]) -> PlayedCluster:
        """The cluster's controllers over a Store, with these schedulers, and with a kubelet that the recording
        plays."""
