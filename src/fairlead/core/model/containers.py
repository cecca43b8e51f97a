"""Container: what one container of a pod requests, for plugins to which the sum over the pod is not enough.

Cards and whole CPUs are given to containers, not to pods. Init containers are kept too, marked as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairlead.core.model.documents import FieldError
from fairlead.core.model.quantity import QuantityError, read_quantity, to_units
from fairlead.core.model.records import record

Amounts = tuple[tuple[str, int], ...]
"""Base units by resource, in the order of names, so that equal ones are equal."""


@record(frozen=True, slots=True)
class Container:
    """`init` containers have ended when the others run, except a `sidecar`."""

    name: str
    requests: Amounts = ()
    limits: Amounts = ()
    init: bool = False
    sidecar: bool = False

    def request(self, resource: str) -> int | None:
        return next((amount for name, amount in self.requests if name == resource), None)

    def limit(self, resource: str) -> int | None:
        return next((amount for name, amount in self.limits if name == resource), None)

    def limit_or_request(self, resource: str) -> int:
        """What is set for a resource, the limit before the request; 0 if neither is."""
        limit = self.limit(resource)
        return limit if limit is not None else self.request(resource) or 0


def containers_of(spec: Mapping[str, Any]) -> tuple[Container, ...]:
    """The containers of a pod in their order, init containers last."""
    groups: Iterable[tuple[str, bool]] = (("containers", False), ("initContainers", True))
    return tuple(
        _container(one, init=init, path=f"spec.{group}[{at}].resources")
        for group, init in groups
        for at, one in enumerate(spec.get(group) or ())
    )


def _container(container: Mapping[str, Any], *, init: bool, path: str) -> Container:
    resources = container.get("resources") or {}
    return Container(
        name=container.get("name") or "",
        requests=_amounts(resources.get("requests"), f"{path}.requests"),
        limits=_amounts(resources.get("limits"), f"{path}.limits"),
        init=init,
        sidecar=init and container.get("restartPolicy") == "Always",
    )


def _amounts(given: Mapping[str, Any] | None, path: str) -> Amounts:
    return tuple(sorted((name, _units(name, amount, path)) for name, amount in (given or {}).items()))


def _units(name: str, amount: Any, path: str) -> int:
    try:
        return to_units(name, read_quantity(amount))
    except QuantityError as error:
        raise FieldError(f"{path}[{name}]", str(error)) from None
