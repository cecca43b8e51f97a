"""Roles for an API server, made from what a way of running needs. Rules that differ only in resources are one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlead.cli.roles.ways import EXTRAS, WAYS
from fairlead.console.roles.grants import Grant
from fairlead.core.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind


def rules_of(grants: Iterable[Grant]) -> list[Doc]:
    """Rules that give exactly these rights."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for grant in grants:
        known = verbs.setdefault((grant.group, grant.resource), [])
        if grant.verb not in known:
            known.append(grant.verb)
    resources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), allowed in verbs.items():
        resources.setdefault((group, tuple(sorted(allowed))), []).append(resource)
    return [
        {"apiGroups": [group], "resources": sorted(names), "verbs": list(allowed)}
        for (group, allowed), names in sorted(resources.items())
    ]


def cluster_rules(way: str) -> list[Doc]:
    """What a way of running may do on the whole cluster."""
    needs = WAYS[way].needs()
    paths = [{"nonResourceURLs": list(needs.paths), "verbs": ["get"]}] if needs.paths else []
    posted = [{"nonResourceURLs": list(needs.posted), "verbs": ["post"]}] if needs.posted else []
    return rules_of(needs.cluster) + paths + posted


def extra_rules(extra: str) -> list[Doc]:
    return rules_of(EXTRAS[extra]())


def lease_rules(name: str) -> list[Doc]:
    """Take, renew and give back one lease. A lease that does not exist yet has no name to be restricted by."""
    made = rules_of([Grant("coordination.k8s.io", "leases", "create")])
    (named,) = rules_of(Grant("coordination.k8s.io", "leases", verb) for verb in ("get", "update"))
    return [*made, {**named, "resourceNames": [name]}]


def role_documents(way: str, *, name: str, lease: tuple[str, str], extras: Iterable[str] = ()) -> list[Doc]:
    """The roles of a way: a ClusterRole, and a Role in the lease's namespace if it takes one. `lease` is its namespace
    and name."""
    rules = cluster_rules(way) + [rule for extra in extras for rule in extra_rules(extra)]
    made = [_role(CLUSTER_ROLE, {"name": name}, rules)]
    if WAYS[way].needs().lease:
        made.append(_role(ROLE, {"name": name, "namespace": lease[0]}, lease_rules(lease[1])))
    return made


def _role(kind: Kind, metadata: Doc, rules: list[Doc]) -> Doc:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "rules": rules}


def bindings(roles: Iterable[Doc], subject: Doc) -> list[Doc]:
    """One binding for each role."""
    made = []
    for role in roles:
        kind = CLUSTER_ROLE_BINDING if role["kind"] == CLUSTER_ROLE.kind else ROLE_BINDING
        ref = {"apiGroup": CLUSTER_ROLE.group, "kind": role["kind"], "name": role["metadata"]["name"]}
        metadata = dict(role["metadata"])
        bound = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        made.append({**bound, "roleRef": ref, "subjects": [subject]})
    return made
