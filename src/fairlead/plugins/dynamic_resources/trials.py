"""Devices in a trial: what evicted pods would give back, and what nominated pods would take.

A preemption tries a node without its less important pods. Their claims are still allocated then, and they stay so until
the pods are gone; in the trial a claim counts as free if all pods that have reserved it are evicted. A pod that is
nominated to the node counts with the devices that it would get there, so that nobody takes what was freed for it.
kube-scheduler does neither: there a pod that lacks devices evicts nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairlead.plugins.dynamic_resources.pod_claims import ClaimMissing, claims_of

if TYPE_CHECKING:
    from fairlead.model.device_claims import Allocation, ResourceClaim
    from fairlead.model.pod import Pod
    from fairlead.state.cluster import Cluster
    from fairlead.state.devices import DeviceIndex

Given = Callable[["Pod"], Sequence["Allocation"]]
"""What a pod that is nominated to the row of the trial would get there."""


@contextmanager
def in_trial(
    devices: DeviceIndex, freed: Iterable[ResourceClaim], nominated: Mapping[str, Pod], given: Given
) -> Iterator[None]:
    """While this lasts, the index shows devices as they are in a trial: without the claims that are `freed`, and with
    what pods that are `nominated` would get."""
    taken = devices.without([claim.key for claim in freed])
    held: list[str] = []
    try:
        for uid, pod in nominated.items():
            for at, allocation in enumerate(given(pod)):
                key = f"trial/{uid}/{at}"
                held.append(key)
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
