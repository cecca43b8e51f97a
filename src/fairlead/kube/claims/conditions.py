"""Binding conditions: what drivers report of devices before a pod may be bound.

The conditions are in the claim's status, by device. A device is ready when all its binding conditions are true, and
lost when one of its failure conditions is.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.device_claims import ResourceClaim


def failure_of(claim: ResourceClaim) -> str:
    """Why the binding failed, in the original's words; empty if it did not."""
    for result in claim.allocation.results if claim.allocation is not None else ():
        found = claim.conditions.get(result.id, {})
        for name in result.failure_conditions:
            condition = found.get(name)
            if condition is not None and condition.get("status") == "True":
                reason, message = condition.get("reason") or "", json.dumps(condition.get("message") or "")
                return f"device binding failed: claim={claim.name}, reason={reason}, message={message}"
    return ""


def is_ready(claim: ResourceClaim) -> bool:
    return all(
        claim.conditions.get(result.id, {}).get(name, {}).get("status") == "True"
        for result in (claim.allocation.results if claim.allocation is not None else ())
        for name in result.binding_conditions
    )


def is_unusable(claim: ResourceClaim, now: float, timeout: float) -> bool:
    """Whether an allocated claim will not become ready any more: a failure is reported, or it took too long."""
    if claim.allocation is None or not claim.allocation.binds_late:
        return False
    if failure_of(claim):
        return True
    since = claim.allocation.allocated_at
    return not is_ready(claim) and since is not None and since + timeout < now
