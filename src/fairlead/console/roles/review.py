"""What a starting process says of its rights: each one that it lacks, and what does not work without it.

One SelfSubjectRulesReview answers for nearly everything. What it does not show is requested one by one, because an
authorizer beside RBAC may allow more than it can list. The answers change nothing: whatever can go on without a right
goes on, and the rest waits until it is granted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.errors import ApiError

if TYPE_CHECKING:
    from fairlead.client.credentials import Connection
    from fairlead.client.port import ClusterApi
    from fairlead.console.roles.grants import Grant
    from fairlead.console.roles.needs import Needs

log = logging.getLogger("fairlead.scheduler")

_GROUP = ("authorization.k8s.io", "v1")
RULES_REVIEW = Kind(*_GROUP, "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False)
ACCESS_REVIEW = Kind(*_GROUP, "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
Leases = Sequence[tuple[str, str]]
"""Namespaces and names of the leases that a process takes."""
_NOWHERE = "fairlead-nowhere"
"""A namespace that nobody has: what holds there holds in all namespaces."""


async def log_missing_rights(api: ClusterApi, needs: Needs, leases: Leases) -> None:
    """Log every right that this account lacks."""
    try:
        missing = await lacking(api, needs, leases)
    except ApiError as error:
        log.info("what this account may do is not known: %s", error)
        return
    said: dict[str, list[str]] = {}
    for grant in missing:
        said.setdefault(grant.otherwise, []).append(grant.shown)
    for otherwise, shown in said.items():
        log.warning("this account may not %s: %s", ", ".join(shown), otherwise)
    if missing:
        log.warning("`fairlead roles` prints the roles that are needed")
    else:
        log.info("this account may do all that is needed")


async def review_rights(connection: Connection, needs: Needs, leases: Leases) -> None:
    """The same over a connection, by a client of its own: with the others a process that stands by may not write."""
    from fairlead.client.client import KubeApi

    api = KubeApi(connection)
    try:
        await log_missing_rights(api, needs, leases)
    finally:
        await api.close()


async def lacking(api: ClusterApi, needs: Needs, leases: Leases) -> list[Grant]:
    """The rights that the account of `api` does not have."""
    missing = await _lacking(api, needs.cluster, _NOWHERE, everywhere=True)
    for namespace, name in leases if needs.lease else ():
        missing += await _lacking(api, needs.lease, namespace, name=name)
    return missing


async def _lacking(
    api: ClusterApi, grants: Sequence[Grant], namespace: str, *, everywhere: bool = False, name: str = ""
) -> list[Grant]:
    """Of these rights those that the account does not have in the namespace, or in all of them."""
    answer = await _create(api, RULES_REVIEW, {"namespace": namespace})
    rules = answer["status"].get("resourceRules") or ()
    doubtful = [grant for grant in grants if not any(_covers(rule, grant, name) for rule in rules)]
    missing = []
    for grant in doubtful:
        resource, _, subresource = grant.resource.partition("/")
        attributes = {"group": grant.group, "resource": resource, "subresource": subresource, "verb": grant.verb}
        if not everywhere:
            attributes |= {"namespace": namespace} | ({} if grant.verb == "create" else {"name": name})
        review = await _create(api, ACCESS_REVIEW, {"resourceAttributes": attributes})
        if not review["status"].get("allowed"):
            missing.append(grant)
    return missing


def _covers(rule: dict[str, Any], grant: Grant, name: str) -> bool:
    names: Iterable[str] = rule.get("resourceNames") or ()
    return (
        bool({"*", grant.group} & set(rule.get("apiGroups") or ()))
        and bool({"*", grant.resource} & set(rule.get("resources") or ()))
        and bool({"*", grant.verb} & set(rule.get("verbs") or ()))
        and (not names or name in names)
    )


async def _create(api: ClusterApi, kind: Kind, spec: dict[str, Any]) -> dict[str, Any]:
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
    return await api.perform(Write(Verb.CREATE, kind, "", "", body))
