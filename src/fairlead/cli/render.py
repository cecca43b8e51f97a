"""Tables for the terminal, from documents and Explanations: where pods are, what zones hold, why pods wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from fairlead.core.model.pod import compile_pod
from fairlead.core.model.quantity import parse_quantity, to_units
from fairlead.core.model.shape import Shapes

if TYPE_CHECKING:
    from fairlead.core.model.explanation import Explanation
    from fairlead.core.model.flow import Doc

ZONE = "topology.kubernetes.io/zone"
Explain = Callable[[str, str], "Explanation | None"]
_SHOWN_RESOURCES = ("cpu", "memory", "nvidia.com/gpu")


def placement_table(pods: Sequence[Doc], nodes: Sequence[Doc], *, title: str) -> Table:
    """One row per workload: its pods by zone, and how well they are spread over nodes."""
    zones = _zones(nodes)
    table = _table(title, "workload", "pods", "running", *zones.names, "nodes", "most on one")
    for workload, members in _by_workload(pods).items():
        placed = [pod["spec"]["nodeName"] for pod in members if pod["spec"].get("nodeName")]
        if not placed:
            continue
        per_zone = Counter(zones.of(name) for name in placed)
        running = sum(pod["status"].get("phase") == "Running" for pod in members)
        spread = Counter(placed)
        counts = (len(members), running, *(per_zone[zone] for zone in zones.names), len(spread), max(spread.values()))
        table.add_row(workload, *map(str, counts))
    return table


def utilisation_table(pods: Sequence[Doc], nodes: Sequence[Doc], *, title: str) -> Table:
    """One row per zone: nodes, pods, and how much of each resource is requested."""
    zones = _zones(nodes)
    allocatable, requested = _sums_of_nodes(nodes, zones), _sums_of_pods(pods, zones)
    resources = [name for name in _SHOWN_RESOURCES if any(sums.get(name) for sums in allocatable.values())]
    table = _table(title, "zone", "nodes", "pods", "pods on a node", *(f"{name} used" for name in resources))
    per_node = Counter(pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName"))
    for zone in zones.names:
        names = [name for name, where in zones.by_node.items() if where == zone]
        counts = [per_node[name] for name in names]
        shares = (_share(requested[zone].get(name, 0), allocatable[zone].get(name, 0)) for name in resources)
        table.add_row(zone, str(len(names)), str(sum(counts)), f"{min(counts)} to {max(counts)}", *shares)
    return table


def pending_table(pods: Sequence[Doc], explain: Explain, *, title: str) -> Table:
    """One row per workload and reason, of the pods that have no node."""
    table = Table(title=title, title_justify="left", title_style="bold", show_lines=False)
    table.add_column("workload")
    table.add_column("pods", justify="right")
    table.add_column("because", overflow="fold")
    reasons: Counter[tuple[str, str]] = Counter()
    for workload, members in _by_workload(pods).items():
        for pod in members:
            if not pod["spec"].get("nodeName"):
                reasons[workload, _reason(pod, explain)] += 1
    for (workload, reason), count in reasons.items():
        table.add_row(workload, str(count), reason)
    return table


def _reason(pod: Doc, explain: Explain) -> str:
    explanation = explain(pod["metadata"]["namespace"], pod["metadata"]["name"])
    return (explanation.message or explanation.verdict) if explanation is not None else "not seen yet"


class _Zones:
    def __init__(self, by_node: dict[str, str]) -> None:
        self.by_node = by_node
        self.names = sorted(set(by_node.values()))

    def of(self, node: str) -> str:
        return self.by_node.get(node, "")


def _zones(nodes: Iterable[Doc]) -> _Zones:
    return _Zones({node["metadata"]["name"]: node["metadata"].get("labels", {}).get(ZONE, "-") for node in nodes})


def _by_workload(pods: Iterable[Doc]) -> dict[str, list[Doc]]:
    result: dict[str, list[Doc]] = defaultdict(list)
    for pod in pods:
        result[_workload(pod)].append(pod)
    return dict(sorted(result.items()))


def _workload(pod: Doc) -> str:
    """The name that people gave: the app label, else the owner's name, else the pod's own."""
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences") or [metadata]
    return str((metadata.get("labels") or {}).get("app") or owners[0]["name"])


def _sums_of_nodes(nodes: Iterable[Doc], zones: _Zones) -> dict[str, Counter[str]]:
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for node in nodes:
        for resource, amount in node["status"].get("allocatable", {}).items():
            sums[zones.of(node["metadata"]["name"])][resource] += to_units(resource, parse_quantity(amount))
    return sums


def _sums_of_pods(pods: Iterable[Doc], zones: _Zones) -> dict[str, Counter[str]]:
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    shapes = Shapes()
    for pod in pods:
        if pod["spec"].get("nodeName"):
            sums[zones.of(pod["spec"]["nodeName"])].update(compile_pod(pod, shapes).request)
    return sums


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def _table(title: str, first: str, *numbers: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column(first)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table
