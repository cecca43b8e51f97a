"""Devices in a trial: what evicted pods would give back, and what nominated pods or members of a gang would take.

A preemption tries a node without its less important pods. Their claims are still allocated then, and they stay so until
the pods are gone; in the trial a claim counts as free if all pods that have reserved it are evicted. A pod that is
nominated to the node counts with the devices that it would get there, so that nobody takes what was freed for it.
kube-scheduler does neither: there a pod that lacks devices evicts nobody. `GangTrial` is the same for a gang, whose
members are put on many rows one after the other while pods leave and come back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairlead.core.state.gangs import gang_key
from fairlead.kube.claims.devices import devices_of
from fairlead.kube.claims.pod_claims import ClaimMissing, claims_of

if TYPE_CHECKING:
    from fairlead.core.model.device_claims import Allocation, ResourceClaim
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.kube.claims.devices import DeviceIndex

Given = Callable[["Pod"], Mapping[str, "Allocation"]]
"""What a pod that is nominated to the row of the trial would get there, by the keys of its claims."""


@contextmanager
def in_trial(
    devices: DeviceIndex, freed: Iterable[ResourceClaim], nominated: Iterable[Pod], given: Given, own: Collection[str]
) -> Iterator[None]:
    """While this lasts, the index shows devices as they are in a trial: without the claims that are `freed`, and with
    what pods that are `nominated` would get. A claim that they share is counted once, and not at all if it is one of
    `own`, the keys of the claims of the pod that is tried."""
    taken = devices.without([claim.key for claim in freed])
    held: set[str] = set()
    try:
        for pod in nominated:
            for claim, allocation in given(pod).items():
                key = f"trial/{claim}"
                if key not in held and claim not in own:
                    held.add(key)
                    devices.hold(key, allocation)
        yield
    finally:
        for key in held:
            devices.let_go(key)
        devices.put_back(taken)


def being_released(devices: DeviceIndex, cluster: Cluster) -> Iterator[ResourceClaim]:
    """Allocated claims that only pods have reserved which are leaving or have left: their devices will soon be free."""
    for claim in devices.allocated():
        states = [cluster.pods.get(user.uid) for user in claim.reserved_for]
        if states and all(state is None or state.seen.terminating for state in states):
            yield claim


def freed_by(devices: DeviceIndex, gone: Mapping[str, Pod]) -> Iterator[ResourceClaim]:
    """Allocated claims that nobody has reserved but pods that are gone."""
    for pod in gone.values():
        for claim in _claims(pod, devices):
            if claim.allocation is not None and all(user.uid in gone for user in claim.reserved_for):
                yield claim


class GangTrial:
    """Follows a Statement that makes room for a gang (its `added` and `removed`): claims of pods that left count as
    free, members have the devices that they would get on their rows. Claims that are being released count as free from
    the beginning, so that nobody is evicted for devices that are about to come. `end` undoes what the Statement's
    rollback has not undone."""

    def __init__(
        self, cluster: Cluster, members: Collection[str], given: Callable[[Pod, int], Mapping[str, Allocation]]
    ):
        self._devices = devices_of(cluster)
        self._members = members
        self._given = given
        self._gone: set[str] = set()
        self._freed: dict[str, Allocation] = {}
        self._users: dict[str, set[str]] = {}
        """Members on rows, by the key of a claim that the first of them would have allocated."""
        self._released = self._devices.without([claim.key for claim in being_released(self._devices, cluster)])

    def removed(self, pod: Pod, row: int) -> None:
        if pod.uid in self._members:
            for key in [key for key, users in self._users.items() if pod.uid in users]:
                self._users[key].discard(pod.uid)
                if not self._users[key]:
                    del self._users[key]
                    self._devices.let_go(key)
        elif pod.shape.claims or pod.claim_statuses:
            self._gone.add(pod.uid)
            free = [c.key for c in _claims(pod, self._devices) if all(u.uid in self._gone for u in c.reserved_for)]
            self._freed.update(self._devices.without(free))

    def added(self, pod: Pod, row: int) -> None:
        if pod.uid in self._members:
            for key, allocation in self._given(pod, row).items():
                self._devices.hold(key, allocation, gang_key(pod))
                self._users[key] = set()
            for name in _keys(pod, self._devices):
                if name in self._users:
                    self._users[name].add(pod.uid)
        elif pod.uid in self._gone:
            self._gone.discard(pod.uid)
            back = [claim.key for claim in _claims(pod, self._devices) if claim.key in self._freed]
            self._devices.put_back({key: self._freed.pop(key) for key in back})

    def end(self) -> None:
        self._devices.put_back(self._released)


def _keys(pod: Pod, devices: DeviceIndex) -> list[str]:
    """The keys of the claims that a pod names."""
    try:
        return [claim.key for claim in claims_of(pod, devices)]
    except ClaimMissing:
        return []


def _claims(pod: Pod, devices: DeviceIndex) -> Iterator[ResourceClaim]:
    try:
        for claim in claims_of(pod, devices):
            if claim.is_reserved_for(pod.uid):
                yield claim
    except ClaimMissing:
        return
    extended = devices.extended_claim(pod)
    if extended is not None and extended.is_reserved_for(pod.uid):
        yield extended
