"""What a pod wants of CPUs and NUMA nodes, from its annotations, its class of service and its band.

A pod is bound to CPUs if its class is LSE or LSR (by label) and its band prod, and a policy says how; or, whatever it
is, on a node that binds all pods.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.core.model.reasons import SKIP, Status, failed, unresolvable
from fairlead.koordinator.numa.accumulator import FULL_CORES, SPREAD
from fairlead.koordinator.records.bands import PROD, band_of, service_class

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod

RESOURCE_SPEC = "scheduling.koordinator.sh/resource-spec"
RESOURCE_STATUS = "scheduling.koordinator.sh/resource-status"
NUMA_SPEC = "scheduling.koordinator.sh/numa-topology-spec"
NOT_WHOLE = "the requested CPUs must be integer"
DEFAULT_POLICY = "Default"


@dataclass(frozen=True, slots=True)
class NumaRequest:
    """`bound` says that the pod itself wants CPUs; `required` is the policy it insists on, `preferred` the one it is
    given otherwise, `exclusive` what it wants for itself alone. `amounts` are its requests in base units."""

    amounts: Mapping[str, int]
    bound: bool
    required: str
    preferred: str
    exclusive: str
    numa_policy: str
    numa_exclusive: str

    @property
    def cpus(self) -> int:
        return self.amounts.get("cpu", 0) // 1000

    @property
    def asks(self) -> bool:
        """Whether the pod itself wants CPUs or NUMA nodes."""
        return bool(self.bound or self.numa_policy)


def asks_for_nothing(pod: Pod) -> bool:
    """Whether it is clear at first sight that a pod wants neither CPUs nor NUMA nodes, so that its amounts alone
    count."""
    annotations = pod.annotations
    return (
        not annotations.get(RESOURCE_SPEC)
        and not annotations.get(NUMA_SPEC)
        and service_class(pod) not in ("LSE", "LSR")
    )


def numa_request(pod: Pod, default_policy: str) -> NumaRequest | Status:
    """The demands of a pod; SKIP if it requests nothing, a refusal or a failure if they cannot be met or read."""
    spec, numa = read_annotation(pod, RESOURCE_SPEC), read_annotation(pod, NUMA_SPEC)
    for read in (spec, numa):
        if isinstance(read, Status):
            return read
    assert not isinstance(spec, Status)
    assert not isinstance(numa, Status)
    amounts = {name: amount for name, amount in pod.shape.fit_request.items() if amount}
    if not amounts:
        return SKIP
    required, preferred, bound = "", "", False
    if service_class(pod) in ("LSE", "LSR") and band_of(pod) == PROD:
        required, preferred = _policies(spec, default_policy)
        if preferred in (FULL_CORES, SPREAD):
            if amounts.get("cpu", 0) % 1000:
                return unresolvable(NOT_WHOLE)
            bound = amounts.get("cpu", 0) > 0
    return NumaRequest(
        amounts=amounts,
        bound=bound,
        required=required if bound else "",
        preferred=preferred if bound else "",
        exclusive=spec.get("preferredCPUExclusivePolicy") or "" if bound else "",
        numa_policy=numa.get("numaTopologyPolicy") or "",
        numa_exclusive=numa.get("singleNUMANodeExclusive") or "",
    )


def _policies(spec: Mapping[str, Any], default: str) -> tuple[str, str]:
    """The policy that the pod requires, if any, and the one that counts."""
    preferred = spec.get("preferredCPUBindPolicy") or DEFAULT_POLICY
    required = spec.get("requiredCPUBindPolicy") or ""
    preferred = default if preferred == DEFAULT_POLICY else preferred
    required = default if required == DEFAULT_POLICY else required
    return required, required or preferred


def read_annotation(pod: Pod, key: str) -> Mapping[str, Any] | Status:
    """An annotation that is a JSON object; a failure if it is something else."""
    text = pod.annotations.get(key)
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        return failed(f"annotation {key} is not readable: {error}")
    return found if isinstance(found, dict) else failed(f"annotation {key} is not an object")
