"""`make bench-kube`: the same pods on the same nodes through the original and through `fairlead scheduler`.

The original is kube-scheduler, or with `--scheduler volcano` Volcano's scheduler, and the pods come in gangs of ten.
Both run on one real API server, back to back. First 3,000 pods are created while the scheduler runs: CPU seconds of its
process, the requests that it made (from the API server's own counters) and its connections. Then they wait when it
starts: pods placed per second from the first binding to the last. Only ratios are held against a bar: both contenders
run on the same machine in the same minutes.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.console.terminal import put_table
from fairlead.core.model.kinds import POD, Kind
from fairlead.volcano.kinds import VC_POD_GROUP
from tests.support.real import contenders
from tests.support.real.contenders import FAIRLEAD, FAIRLEAD_VOLCANO, KUBE, VOLCANO, Contender
from tests.support.real.control_plane import ControlPlane, define_volcano_kinds
from tests.support.real.volcano_runner import make_queues

RESULTS = Path("build/bench-kube.json")
CONNECTIONS_PAUSE = 0.1
EVENTS_SETTLE = 5.0
"""Seconds that a scheduler is given to write its last events."""
GANG = 10
"""Pods of a PodGroup."""
_REQUEST = re.compile(rb"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(rb'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Result:
    contender: str
    pods_per_second: float
    """Of a backlog."""
    pods_per_second_arriving: float
    """While they are being created, which the machine may hold up more than the scheduler does."""
    cpu_ms_per_pod: float
    requests_per_pod: float
    connections: int
    """TLS connections to the API server that were seen while pods arrived. kube-scheduler speaks HTTP/2, which needs
    one for all its requests."""
    requests: dict[str, float]


Load = dict[Kind, list[dict[str, Any]]]
"""Documents by kind, in the order in which they are to be made; pods come last."""


def plain_pods(count: int, prefix: str = "web") -> Load:
    return {POD: [contenders.pod_document(f"{prefix}-{at}", cpu="100m", memory="128Mi") for at in range(count)]}


def gangs(count: int, prefix: str = "gang") -> Load:
    """So many pods in PodGroups of ten that start together or not at all; the last may be smaller."""
    load: Load = {VC_POD_GROUP: [], POD: plain_pods(count, prefix)[POD]}
    for first in range(0, count, GANG):
        members = load[POD][first : first + GANG]
        group = f"{prefix}-{first // GANG}"
        spec = {"minMember": len(members), "queue": "default"}
        document = {"metadata": {"name": group}, "spec": spec, "status": {"phase": "Pending"}}
        load[VC_POD_GROUP].append({"apiVersion": VC_POD_GROUP.api_version, "kind": VC_POD_GROUP.kind} | document)
        for pod in members:
            pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": group}
            pod["spec"]["schedulerName"] = "volcano"
    return load


@dataclass(frozen=True, slots=True)
class Match:
    """Who is measured, and with which load."""

    theirs: str
    ours: str
    load: Callable[[int, str], Load]
    bar: float
    """The least share of their pods per second."""


MATCHES = {
    "kube": Match(KUBE, FAIRLEAD, plain_pods, 0.8),
    "volcano": Match(VOLCANO, FAIRLEAD_VOLCANO, gangs, 1.0),
}


@dataclass(frozen=True, slots=True)
class Bar:
    """fairlead's number as a share of the original's, and what it is held to."""

    name: str
    ratio: float
    bar: float
    higher_is_better: bool

    @property
    def met(self) -> bool:
        return self.ratio >= self.bar if self.higher_is_better else self.ratio <= self.bar


@click.command()
@click.option("--scheduler", type=click.Choice(["kube", "volcano"]), default="kube", show_default=True)
@click.option("--nodes", default=1000, show_default=True)
@click.option("--pods", default=3000, show_default=True)
@click.option("--rounds", default=1, show_default=True, help="Medians of so many.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def main(scheduler: str, nodes: int, pods: int, rounds: int, output: Path) -> None:
    """Measure fairlead beside the real kube-scheduler, or Volcano's, on the real API server."""
    match = MATCHES[scheduler]
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as name:
        plane = ControlPlane(Path(name))
        try:
            plane.start()
            if match.theirs == VOLCANO:
                define_volcano_kinds(plane.kubeconfig)
            results = asyncio.run(_measure(plane, match, nodes, pods, rounds))
        finally:
            plane.stop()
    bars = _bars(results, match)
    _show(results, bars, nodes, pods, match)
    output.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "scheduler": scheduler,
        "nodes": nodes,
        "pods": pods,
        "results": [asdict(result) for result in results],
        "ratios": [asdict(bar) | {"met": bar.met} for bar in bars],
    }
    output.write_text(json.dumps(document, indent=2) + "\n")
    click.echo(f"written to {output}")


async def _measure(plane: ControlPlane, match: Match, nodes: int, pods: int, rounds: int) -> list[Result]:
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    console = Console(stderr=True)
    results = []
    try:
        with console.status(f"creating {nodes} nodes"):
            await contenders.make_cluster(api, nodes)
            if match.theirs == VOLCANO:
                await make_queues(api)
        for number in range(rounds):
            for name in (match.theirs, match.ours):
                with console.status(f"round {number + 1} of {rounds}: {pods} pods through {name}"):
                    results.append(await _run(plane, api, name, match.load, pods))
    finally:
        await api.close()
    return results


async def _run(plane: ControlPlane, api: KubeApi, name: str, load: Callable[[int, str], Load], pods: int) -> Result:
    """Each part in a namespace of its own, which is empty afterwards."""
    first, second = (f"bench-{uuid.uuid4().hex[:8]}" for _ in range(2))
    for namespace in (first, second):
        await contenders.make_namespace(api, namespace)
    arriving, used, connections, requests = await _arriving(
        plane, api, name, first, load(1, "probe"), load(pods, "web")
    )
    await contenders.clear(api, first)
    waiting = await _waiting(plane, api, name, second, load(pods, "web"))
    await contenders.clear(api, second)
    return Result(
        name,
        pods / waiting,
        pods / arriving,
        used * 1000 / pods,
        sum(requests.values()) / pods,
        connections,
        {what: count / pods for what, count in sorted(requests.items())},
    )


async def _arriving(
    plane: ControlPlane, api: KubeApi, name: str, namespace: str, probe: Load, load: Load
) -> tuple[float, float, int, Counter[str]]:
    """Pods come while the scheduler runs: seconds until the last is bound, CPU seconds, connections and requests."""
    with contenders.contender(name, plane.kubeconfig, plane.directory / namespace) as running:
        await contenders.until_ready(api, namespace, running, probe)
        await asyncio.sleep(1.0)
        before, cpu_before = await _requests(api), running.cpu_seconds()
        seen: set[str] = set()
        counting = asyncio.ensure_future(_count_connections(running, seen))
        began = time.monotonic()
        (_, ended), _ = await asyncio.gather(
            contenders.until_bound(api, namespace, len(load[POD]) + 1, running),
            _create(api, namespace, load),
        )
        await asyncio.sleep(EVENTS_SETTLE)
        counting.cancel()
        return ended - began, running.cpu_seconds() - cpu_before, len(seen), await _requests(api) - before


async def _create(api: KubeApi, namespace: str, load: Load) -> None:
    for kind, documents in load.items():
        await contenders.create(api, kind, namespace, documents)


async def _count_connections(running: Contender, seen: set[str]) -> None:
    """Look again and again, until cancelled. One that is open for less than the pause may be missed."""
    while True:
        seen |= running.connections()
        await asyncio.sleep(CONNECTIONS_PAUSE)


async def _waiting(plane: ControlPlane, api: KubeApi, name: str, namespace: str, load: Load) -> float:
    """Pods wait when the scheduler starts: seconds from the first binding to the last, where nothing but the scheduler
    and its API server is at work."""
    await _create(api, namespace, load)
    with contenders.contender(name, plane.kubeconfig, plane.directory / namespace) as running:
        first, last = await contenders.until_bound(api, namespace, len(load[POD]), running)
    return last - first


async def _requests(api: KubeApi) -> Counter[str]:
    """What a scheduler may have requested since the server started: everything about pods and groups that their creator
    does not do, and events."""
    counts: Counter[str] = Counter()
    for labels, value in _REQUEST.findall(await api.raw("/metrics", accept="text/plain")):
        found = {key.decode(): text.decode() for key, text in _LABEL.findall(labels)}
        resource, part, verb = found["resource"], found["subresource"], found["verb"]
        theirs = resource in ("pods", "podgroups") and (part or verb in ("GET", "PATCH", "PUT", "DELETE"))
        if resource == "events" or theirs:
            counts[f"{verb} {resource}{'/' if part else ''}{part}"] += int(float(value))
    return counts


def _bars(results: list[Result], match: Match) -> list[Bar]:
    def ratio(figure: str) -> float:
        ours, theirs = (
            median(getattr(result, figure) for result in results if result.contender == name)
            for name in (match.ours, match.theirs)
        )
        return float(ours / theirs)

    return [
        Bar("pods per second", ratio("pods_per_second"), match.bar, higher_is_better=True),
        Bar("scheduler CPU per pod", ratio("cpu_ms_per_pod"), 1.0, higher_is_better=False),
        Bar("API requests per pod", ratio("requests_per_pod"), 1.0, higher_is_better=False),
    ]


def _show(results: list[Result], bars: list[Bar], nodes: int, pods: int, match: Match) -> None:
    console = Console()
    table = Table(title=f"{pods:,} pods on {nodes:,} nodes", title_justify="left")
    for heading in ("scheduler", "pods/s", "arriving", "CPU ms/pod", "requests/pod", "connections", "of which"):
        table.add_column(heading, justify="left" if heading in ("scheduler", "of which") else "right")
    for result in results:
        detail = ", ".join(f"{what} {count:.2f}" for what, count in result.requests.items() if count >= 0.005)
        rates = (f"{rate:,.0f}" for rate in (result.pods_per_second, result.pods_per_second_arriving))
        costs = (f"{cost:.2f}" for cost in (result.cpu_ms_per_pod, result.requests_per_pod))
        table.add_row(result.contender, *rates, *costs, str(result.connections), detail)
    put_table(console, table)
    for bar in bars:
        verdict = ("met", "green") if bar.met else ("missed", "red")
        sign = "≥" if bar.higher_is_better else "≤"
        console.print(
            f"{bar.name}: {bar.ratio:.2f} of {match.theirs}'s (bar {sign} {bar.bar:g}) {verdict}", highlight=False
        )


if __name__ == "__main__":
    main()
