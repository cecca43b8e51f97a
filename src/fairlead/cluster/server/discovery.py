"""What is served: the documents by which clients find groups, versions, kinds and verbs.

The same facts in two forms: one small document per group and version, as clients always requested them, and the
aggregated form that current kubectl requests first. Only subresources that are really served are listed; kubectl
drain, for instance, evicts where it finds `pods/eviction` and deletes where it does not. Kinds that users define
appear with their definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cluster.custom.definitions import version_priority
from fairlead.cluster.server.reviews import REVIEWS
from fairlead.cluster.store.subresources import BINDING
from fairlead.cluster.store.verbs import SERVED_SUBRESOURCES
from fairlead.core.model import kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind, Registry

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
SUBRESOURCE_VERBS = {"binding": ["create"], "finalize": ["update"], "eviction": ["create"], "token": ["create"]}
_SUBRESOURCE_KINDS = {
    "scale": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
    "eviction": {"group": "policy", "version": "v1", "kind": "Eviction"},
    "token": {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"},
}
MAJOR, MINOR, GIT_VERSION = "1", "36", "v1.36.4-fairlead"


def version_document() -> Doc:
    return {
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "python",
        "platform": "linux/amd64",
    }


def discovery_document(path: str, registry: Registry) -> Doc | None:
    """The document at a discovery path, in the classic form; None if there is no such group or version."""
    match path.strip("/").split("/"):
        case ["api"]:
            addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
        case ["apis"]:
            groups = [_group(name, versions) for name, versions in _groups(registry).items() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group] if group in _groups(registry):
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, _groups(registry)[group])}
        case ["api", version] if version in _groups(registry)[""]:
            return _resource_list(version, _groups(registry)[""][version])
        case ["apis", group, version] if version in _groups(registry).get(group, {}):
            return _resource_list(f"{group}/{version}", _groups(registry)[group][version])
    return None


def aggregated_document(path: str, registry: Registry) -> Doc | None:
    """The aggregated form, which only `/api` and `/apis` have."""
    core = {"/api": True, "/apis": False}.get("/" + path.strip("/"))
    if core is None:
        return None
    items = [_aggregated_group(name, versions) for name, versions in _groups(registry).items() if (name == "") == core]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def served_verbs(kind: Kind) -> list[str]:
    if kind is kinds.NAMESPACE:
        return [verb for verb in VERBS if verb != "deletecollection"]
    return ["create"] if kind is BINDING or _is_review(kind) else VERBS


def _is_review(kind: Kind) -> bool:
    return REVIEWS.get((kind.group, kind.version, kind.plural)) is kind


def served_subresources(kind: Kind) -> list[str]:
    return sorted(kind.subresources & SERVED_SUBRESOURCES - ({"binding"} if kind is not kinds.POD else set()))


def _groups(registry: Registry) -> dict[str, dict[str, list[Kind]]]:
    """Kinds by group and version; within a group, more stable and newer versions come first."""
    groups: dict[str, dict[str, list[Kind]]] = {}
    for kind in (*registry, *REVIEWS.values()):
        groups.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
    return {name: dict(sorted(versions.items(), key=_stability)) for name, versions in groups.items()}


def _stability(item: tuple[str, Any]) -> tuple[int, int, int, str]:
    return version_priority(item[0])


def _group(name: str, versions: dict[str, list[Kind]]) -> Doc:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(group_version: str, served: list[Kind]) -> Doc:
    resources = [entry for kind in _with_bindings(served) for entry in _entries(kind)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}


def _with_bindings(served: list[Kind]) -> list[Kind]:
    extra = [BINDING] if kinds.POD in served else []
    return sorted([*served, *extra], key=lambda kind: kind.plural)


def _entries(kind: Kind) -> Iterator[Doc]:
    entry: Doc = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": served_verbs(kind),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    yield entry
    for name in served_subresources(kind):
        yield {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **_subresource_kind(kind, name),
            "verbs": _subresource_verbs(name),
        }


def _subresource_verbs(name: str) -> list[str]:
    return SUBRESOURCE_VERBS.get(name, ["get", "patch", "update"])


def _subresource_kind(kind: Kind, name: str) -> Doc:
    return _SUBRESOURCE_KINDS.get(name) or {"kind": "Binding" if name == "binding" else kind.kind}


def _aggregated_group(name: str, versions: dict[str, list[Kind]]) -> Doc:
    return {
        "metadata": {"name": name} if name else {},
        "versions": [
            {
                "version": version,
                "resources": [_aggregated(kind) for kind in _with_bindings(served)],
                "freshness": "Current",
            }
            for version, served in versions.items()
        ],
    }


def _aggregated(kind: Kind) -> Doc:
    resource: Doc = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": served_verbs(kind),
    }
    if kind.short_names:
        resource["shortNames"] = list(kind.short_names)
    if kind.categories:
        resource["categories"] = list(kind.categories)
    if names := served_subresources(kind):
        resource["subresources"] = [
            {
                "subresource": name,
                "responseKind": {"group": kind.group, "version": kind.version} | _subresource_kind(kind, name),
                "verbs": _subresource_verbs(name),
            }
            for name in names
        ]
    return resource
