"""Which ResourceQuota keeps pods from being created, with amounts: admission refuses such pods, so no scheduler ever
sees them. The amounts are read from the quotas' status, for as many pods as are missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.client.port import Query
from fairlead.core.family import tables
from fairlead.core.model import kinds
from fairlead.core.model.lack import Lack
from fairlead.core.model.quantity import format_quantity, nanos_to_units, parse_quantity, to_units
from fairlead.core.model.quota import counts, usage_of
from fairlead.errors import ApiError

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi
    from fairlead.core.model.flow import Doc


async def quota_lacks(api: KubeApi, namespace: str, pod: Doc, count: int) -> list[Doc]:
    """Documents of the lacks for `count` more pods like this one; empty if every quota of the namespace has room."""
    usage = usage_of(kinds.POD, pod)
    found: list[Doc] = []
    for quota in (await api.list(kinds.RESOURCE_QUOTA, Query(namespace=namespace))).items:
        status = quota.get("status") or {}
        if not counts(quota, kinds.POD, pod):
            continue
        for name, text in (status.get("hard") or {}).items():
            resource = name.removeprefix("requests.").removeprefix("limits.")
            asks = nanos_to_units(resource, usage.get(name, 0)) * count
            used = (status.get("used") or {}).get(name, "0")
            free = max(0, to_units(resource, parse_quantity(text)) - to_units(resource, parse_quantity(used)))
            if asks > free:
                asked, left, missing = (format_quantity(amount, resource) for amount in (asks, free, asks - free))
                lack = Lack("ResourceQuota", quota["metadata"]["name"], name, asked, left, missing)
                found.append(lack.to_document())
    return found


async def missing_member(api: KubeApi, namespace: str, name: str) -> Doc | None:
    """A pod like those that a group or an owner of this name still lacks; None if nothing says what they are like."""
    for pod in (await api.list(kinds.POD, Query(namespace=namespace))).items:
        metadata, group = pod["metadata"], pod["spec"].get("schedulingGroup") or {}
        named = {one["name"] for one in metadata.get("ownerReferences") or ()} | {group.get("podGroupName")}
        annotations = metadata.get("annotations") or {}
        if name in named or any(annotations.get(key) == name for key in tables("group_annotations")):
            return pod
    try:
        return dict((await api.get(kinds.JOB, namespace, name))["spec"]["template"])
    except ApiError:
        return None
