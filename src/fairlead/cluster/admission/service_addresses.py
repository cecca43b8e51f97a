"""Cluster addresses and node ports of services: each its own, and the same again for the same name.

Nothing routes to them in an embedded cluster; they are there because clients and tables expect them. An address is
found from the service's name, so that a rebuilt cluster has the same ones, and moved on while somebody else has it.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address
from typing import TYPE_CHECKING
from zlib import crc32

from fairlead.core.model.kinds import SERVICE

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView

_FIRST_ADDRESS, _ADDRESSES = int(IPv4Address("10.96.0.10")), 2**16
_FIRST_PORT, _PORTS = 30000, 2768


def with_addresses(service: Doc, view: DocView) -> Doc:
    """The service with a cluster address and node ports where its type has them and nobody chose any."""
    spec = service.get("spec", {})
    if spec.get("type", "ClusterIP") == "ExternalName":
        return service
    seed = crc32(f"{service['metadata'].get('namespace', '')}/{service['metadata']['name']}".encode())
    out = dict(spec)
    if not out.get("clusterIP"):
        taken = {other.get("spec", {}).get("clusterIP") for other in view.list(SERVICE)}
        out["clusterIP"] = _free(seed, _ADDRESSES, lambda n: str(IPv4Address(_FIRST_ADDRESS + n)), taken)
        out["clusterIPs"] = [out["clusterIP"]]
    if out.get("type") in ("NodePort", "LoadBalancer"):
        out["ports"] = _with_node_ports(out.get("ports", []), seed, view)
    return {**service, "spec": out}


def _free(seed: int, count: int, name: Callable[[int], str], taken: set[str | None]) -> str:
    for step in range(count):
        candidate = name((seed + step) % count)
        if candidate not in taken:
            return candidate
    return name(seed % count)


def _with_node_ports(ports: list[Doc], seed: int, view: DocView) -> list[Doc]:
    taken: set[str | None] = {
        str(port.get("nodePort")) for other in view.list(SERVICE) for port in other.get("spec", {}).get("ports", ())
    }
    out: list[Doc] = []
    for port in ports:
        if not port.get("nodePort"):
            chosen = _free(seed, _PORTS, lambda n: str(_FIRST_PORT + n), taken)
            port = {**port, "nodePort": int(chosen)}
        taken.add(str(port["nodePort"]))
        out.append(port)
    return out


def keep_addresses(new: Doc, old: Doc) -> Doc:
    """An update that does not speak of the address or the node ports keeps them."""
    spec, before = new.get("spec", {}), old.get("spec", {})
    if spec.get("type", "ClusterIP") == "ExternalName":
        return new
    out = dict(spec)
    for field in ("clusterIP", "clusterIPs"):
        if not out.get(field) and before.get(field):
            out[field] = before[field]
    ports = {(port.get("name"), port.get("port")): port.get("nodePort") for port in before.get("ports", ())}
    if out.get("type") in ("NodePort", "LoadBalancer"):
        out["ports"] = [
            {**port, "nodePort": kept}
            if not port.get("nodePort") and (kept := ports.get((port.get("name"), port.get("port"))))
            else port
            for port in out.get("ports", ())
        ]
    return {**new, "spec": out}
