"""Policies that no recording has, under the real Volcano scheduler and under Fairlead: the same pods get the same
places and the same cards, and the same ones are evicted."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.client.port import Query
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.core.model.times import timestamp
from fairlead.errors import NotFound
from fairlead.volcano.kinds import VC_POD_GROUP
from tests.support.real.contenders import create, node_document, pod_document
from tests.support.real.control_plane import ControlPlane
from tests.support.real.volcano_runner import FAIRLEAD, HOME, VOLCANO, StoryRunner, contender, prepare
from tests.support.real.volcano_stories import GROUP
from tests.support.volcano import conf

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=50)]

Doc = dict[str, Any]
SPACE = "default"
PLACING, PREEMPTING = "allocate, backfill", "allocate, backfill, preempt"
SPARING = "priority; gang enablePreemptable: false"
TOLD = ("volcano.sh/gpu-index", "volcano.sh/vgpu-ids-new")
AT_ONCE = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


@dataclass(frozen=True, slots=True)
class Case:
    """`running` pods are on nodes when the scheduler starts; `waiting` ones come later, the most important first."""

    conf: str
    nodes: list[Doc]
    waiting: list[Doc]
    running: tuple[Doc, ...] = ()
    others: tuple[tuple[Kind, Doc], ...] = ()


def node(name: str, **offers: str) -> Doc:
    made = node_document(name)
    made["status"]["allocatable"] |= offers
    made["status"]["capacity"] = made["status"]["allocatable"]
    return made


def pod(name: str, rank: int, asks: dict[str, str], *, on: str = "", labels: dict[str, str] | None = None) -> Doc:
    made = pod_document(name, **asks)
    made["metadata"] |= {"annotations": {GROUP: name, "volcano.sh/preemptable": str(bool(on)).lower()}}
    made["metadata"]["labels"] = labels or {"app": name}
    made["spec"] |= {"schedulerName": "volcano", "priorityClassName": f"p{rank}"}
    made["spec"]["containers"][0]["resources"]["limits"] = asks
    if on:
        made["spec"]["nodeName"] = on
    return made


def running(
    name: str,
    labels: dict[str, str] | None = None,
    *,
    since: float = 3600.0,
    started: float = 3600.0,
    class_name: str = "p1",
) -> Doc:
    """A pod of 8 cores that was placed and started so many seconds ago."""
    made = pod(name, 1, {"cpu": "8"}, on="n0", labels=labels or {"app": name})
    made["spec"]["priorityClassName"] = class_name
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(time.time() - since)}
    made["status"] = {"phase": "Running", "startTime": timestamp(time.time() - started), "conditions": [scheduled]}
    return made


def group_of(member: Doc) -> Doc:
    kind, name = VC_POD_GROUP, member["metadata"]["name"]
    rank = "p1" if "nodeName" in member["spec"] else member["spec"]["priorityClassName"]
    spec = {"minMember": 1, "queue": "default", "priorityClassName": rank}
    status = {"phase": "Running" if "nodeName" in member["spec"] else "Inqueue"}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": spec,
        "status": status,
    }


def budget(allowed: int) -> tuple[Kind, Doc]:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "low"}}}
    status = {"disruptionsAllowed": allowed, "currentHealthy": 4, "desiredHealthy": 3, "expectedPods": 4}
    made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}
    return kinds.POD_DISRUPTION_BUDGET, made | {"status": status}


def cases(measurements: str) -> dict[str, Case]:
    cooling = {"volcano.sh/cooldown-time": "5m"}
    gpu, memory = "nvidia.com/gpu", "volcano.sh/gpu-memory"
    cards = {"volcano.sh/gpu-number": "2", memory: "32"}
    fit = (
        f"{{resources: {{{gpu}: {{type: MostAllocated, weight: 2}}, cpu: {{type: LeastAllocated, weight: 1}}}},"
        f" sra: {{enable: true, resources: {gpu}, weight: 10, resourceWeight: {{{gpu}: 1}}}}}}"
    )
    guarded = tuple(running(f"l{at}", {"app": "low"}) for at in range(3))
    sharing = "predicates; deviceshare arguments: {deviceshare.GPUSharingEnable: true}"
    return {
        "cdp": Case(
            conf(PREEMPTING, f"{SPARING}; cdp", "predicates"),
            [node("n0")],
            [pod("high", 19, {"cpu": "16"})],
            (
                running("l0", cooling, since=60),
                running("l1", cooling, since=60, started=60),
                running("l2", cooling, started=60),
                running("l3", since=60),
            ),
        ),
        "conformance": Case(
            conf(PREEMPTING, f"{SPARING}; conformance", "predicates"),
            [node("n0")],
            [pod("high", 19, {"cpu": "16"})],
            (
                running("l0", class_name="system-node-critical"),
                running("l1"),
                running("l2", class_name="system-cluster-critical"),
                running("l3"),
            ),
        ),
        "pdb": Case(
            conf(PREEMPTING, f"{SPARING}; pdb", "predicates"),
            [node("n0")],
            [pod("high", 19, {"cpu": "8"})],
            (*guarded, running("l3")),
            (budget(0),),
        ),
        "pdb, too little": Case(
            conf(PREEMPTING, f"{SPARING}; pdb", "predicates"),
            [node("n0")],
            [pod("high", 19, {"cpu": "16"})],
            (*guarded, running("l3")),
            (budget(0),),
        ),
        "usage": Case(
            conf(PLACING, "priority; gang", "predicates; usage")
            + f"metrics: {{type: prometheus, address: '{measurements}', interval: 1s}}\n",
            [node("u0"), node("u1"), node("u2")],
            [pod("a", 19, {"cpu": "4"}), pod("b", 18, {"cpu": "4"})],
        ),
        "resource-strategy-fit": Case(
            conf(PLACING, "priority; gang", f"predicates; resource-strategy-fit arguments: {fit}"),
            [node("g0", **{gpu: "8"}), node("g1", **{gpu: "4"}), node("p0")],
            [pod(f"a{at}", 19 - at, {"cpu": "2", **({gpu: "1"} if at % 2 else {})}) for at in range(6)],
        ),
        "deviceshare": Case(
            conf(PLACING, "priority; gang", sharing),
            [node("n0", **cards), node("n1")],
            [pod(f"m{at}", 19 - at, {memory: size}) for at, size in enumerate(("10", "7", "6", "17", "9"))],
        ),
    }


# ---- the stage ----


@contextmanager
def prometheus() -> Iterator[str]:
    """How busy three nodes are, for whoever asks about one of them or about all."""
    busy = {"cpu": {"u0": 95.0, "u1": 70.0, "u2": 30.0}, "memory": {"u0": 5.0, "u1": 50.0, "u2": 60.0}}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
            values = busy["cpu" if "node_cpu" in asked else "memory"]
            named = [name for name in values if f"%22{name}%22" in asked or "instance%3D%22" not in asked]
            result = [{"metric": {"instance": name}, "value": [time.time(), str(values[name])]} for name in named]
            raw = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


async def played(case: Case, name: str, plane: ControlPlane) -> dict[str, tuple[str, ...]]:
    """By pod: where it is, that it has to go, and what it was told."""
    settings = plane.directory / f"{name}-settings"
    settings.mkdir(exist_ok=True)
    file = settings / "volcano-scheduler.conf"
    file.write_text(case.conf)
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    stage = StoryRunner(api, file)
    try:
        await _set_up(api, case)
        with contender(name, plane.kubeconfig, file):
            await _rounds(stage)
            for one in case.nodes:
                # The original looks for cards on a node when the node changes, once it knows that it should.
                changes = {"metadata": {"annotations": {"example.com/seen": "true"}}}
                await api.perform(Write(Verb.PATCH, kinds.NODE, "", one["metadata"]["name"], changes))
            await _rounds(stage)
            await create(api, kinds.POD, SPACE, case.waiting)
            for member in case.waiting:
                await create(api, VC_POD_GROUP, SPACE, [group_of(member)])
            await _rounds(stage)
            return {
                one["metadata"]["name"]: _fate(one) for one in (await api.list(kinds.POD, Query(namespace=SPACE))).items
            }
    finally:
        await _clear(api, case)
        await api.close()


async def _rounds(stage: StoryRunner) -> None:
    """Wait until a whole round has passed, and what it decided was written."""
    for _ in range(4):
        await stage._errand({"kubernetes.io/hostname": HOME}, phase="Inqueue")


def _fate(one: Doc) -> tuple[str, ...]:
    annotations = one["metadata"].get("annotations") or {}
    leaving = ("evicted",) if one["metadata"].get("deletionTimestamp") else ()
    return (one["spec"].get("nodeName", ""), *leaving, *(annotations[key] for key in TOLD if key in annotations))


async def _set_up(api: KubeApi, case: Case) -> None:
    await create(api, kinds.NODE, "", case.nodes)
    for kind, document in case.others:
        await create(api, kind, SPACE, [document])
        await _set_status(api, kind, document)
    await create(api, VC_POD_GROUP, SPACE, [group_of(one) for one in case.running])
    await create(api, kinds.POD, SPACE, case.running)
    for one in case.running:
        await _set_status(api, kinds.POD, one)


async def _set_status(api: KubeApi, kind: Kind, document: Doc) -> None:
    status = {"status": document["status"]}
    await api.perform(Write(Verb.PATCH, kind, SPACE, document["metadata"]["name"], status, subresource="status"))


async def _clear(api: KubeApi, case: Case) -> None:
    pods = [*case.running, *case.waiting]
    made = [(kinds.POD, SPACE, one) for one in pods] + [(VC_POD_GROUP, SPACE, one) for one in pods]
    made += [(kind, SPACE, one) for kind, one in case.others] + [(kinds.NODE, "", one) for one in case.nodes]
    for kind, namespace, one in made:
        try:
            await api.perform(Write(Verb.DELETE, kind, namespace, one["metadata"]["name"], AT_ONCE))
        except NotFound:
            continue


def test_the_same_pods_are_placed_reported_and_evicted_by_policies(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "plane")
    differing = []
    try:
        prepare(plane)
        with prometheus() as measurements:
            for title, case in cases(measurements).items():
                theirs, ours = (asyncio.run(played(case, name, plane)) for name in (VOLCANO, FAIRLEAD))
                if theirs != ours or not theirs:
                    differing.append(f"{title}\n  volcano:  {theirs}\n  fairlead: {ours}")
    finally:
        plane.stop()
    assert not differing, "\n".join(differing)
