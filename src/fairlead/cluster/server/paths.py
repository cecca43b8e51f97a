"""From a URL path to the thing it names.

/api/v1/namespaces/NS/pods/NAME/status          /apis/apps/v1/deployments
└ core  └ namespace └ kind └ name └ subresource   └ group └ version └ kind, in all namespaces
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.cluster.server.reviews import REVIEWS
from fairlead.cluster.store.subresources import BINDING
from fairlead.core.model import kinds

if TYPE_CHECKING:
    from fairlead.core.model.kinds import Kind, Registry

_OF_NAMESPACES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class Target:
    """A collection (no name), an object, or a subresource of one."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def find_target(path: str, registry: Registry) -> Target | None:
    """What the path names, or None if nothing like it is served."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        return _within("", parts[1], parts[2:], registry)
    if parts[0] == "apis" and len(parts) > 3:
        return _within(parts[1], parts[2], parts[3:], registry)
    return None


def _within(group: str, version: str, parts: list[str], registry: Registry) -> Target | None:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and not (not group and parts[2] in _OF_NAMESPACES):
        namespace, parts = parts[1], parts[2:]
    plural, name, subresource, *rest = [*parts, "", ""] if len(parts) < 3 else parts
    if not group and plural == BINDING.plural and namespace:
        kind: Kind | None = BINDING
    else:
        kind = registry.by_resource(group, version, plural) or REVIEWS.get((group, version, plural))
    if kind is None or any(rest) or not plural or (namespace and not kind.namespaced):
        return None
    if name and kind.namespaced and not namespace:
        return None
    return Target(kind, namespace, name, subresource)


def is_pod_binding(target: Target) -> bool:
    """A Binding posted to the collection of bindings or to the pod's subresource: one and the same thing."""
    return target.kind is BINDING or (target.kind is kinds.POD and target.subresource == "binding")
