"""Twins: the same random deeds on the Store and on a real API server, and the same answers from both.

Each deed is a request that a user or a controller might make, sensible or not. After every one the answers are compared
(documents without what must differ, errors with code, reason, message and details), and at the end what a watch
had to say. A seed that finds a difference goes on finding it.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
import uuid
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import Connection
from fairlead.client.port import ClusterApi, Query
from fairlead.cluster.store.store import Store, StoreApi
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP, DEPLOYMENT, JOB, NAMESPACE, NODE, POD, SERVICE, Kind
from fairlead.errors import ApiError
from tests.support.real.control_plane import ControlPlane

pytestmark = pytest.mark.kube

SEEDS = range(16)
DEEDS = 30
VOLATILE = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "deletionTimestamp", "selfLink")
# The real one runs without the plugin that fills these in.
ACCOUNT = ("serviceAccount", "serviceAccountName")
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NAMES = ("a", "b")

Doc = dict[str, Any]
Deed = Callable[["Side"], Any]


class Side:
    """One of the twins. Remembers the last document it gave out per object, which may since be stale."""

    def __init__(self, api: ClusterApi, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        self.known: dict[tuple[Kind, str], Doc] = {}

    def place(self, kind: Kind) -> str:
        return self.namespace if kind.namespaced else ""

    def called(self, kind: Kind, name: str) -> str:
        return name if kind.namespaced else f"{self.namespace}-{name}"

    async def write(self, verb: Verb, kind: Kind, name: str, body: Any = None, **more: Any) -> Any:
        name = self.called(kind, name)
        return await self._answer(kind, name, self.api.perform(Write(verb, kind, self.place(kind), name, body, **more)))

    async def get(self, kind: Kind, name: str, **more: Any) -> Any:
        name = self.called(kind, name)
        return await self._answer(kind, name, self.api.get(kind, self.place(kind), name, **more))

    async def list(self, kind: Kind, **more: Any) -> Any:
        try:
            page = await self.api.list(kind, Query(namespace=self.place(kind), **more))
        except ApiError as error:
            return refusal(error)
        mine = [each for each in page.items if kind.namespaced or self.namespace in each["metadata"]["name"]]
        return [comparable(each) for each in mine]

    async def _answer(self, kind: Kind, name: str, asked: Any) -> Any:
        try:
            doc = deepcopy(await asked)
        except ApiError as error:
            return refusal(error)
        if doc.get("kind") != kind.kind:
            return comparable(doc)
        before = self.known.get((kind, name))
        self.known[kind, name] = doc
        moved = before is None or before["metadata"]["resourceVersion"] != doc["metadata"]["resourceVersion"]
        return moved, comparable(doc)


def comparable(doc: Any) -> Any:
    """A document without what two servers cannot agree on."""
    if isinstance(doc, dict):
        return {key: comparable(value) for key, value in doc.items() if not _differs(key)}
    if isinstance(doc, list):
        return [comparable(each) for each in doc]
    return UID.sub("UID", doc) if isinstance(doc, str) else doc


def _differs(key: str) -> bool:
    return key in VOLATILE or key in ACCOUNT or key.endswith(("Time", "Timestamp"))


def refusal(error: ApiError) -> Any:
    text = re.sub(r"(record|precondition) \(\d+\)|\d{4}-\d\d-\d\dT\S+", "X", UID.sub("UID", error.message))
    details = comparable(error.details)
    if "causes" in details:
        # On an update the real one looks at metadata twice and tells what it finds twice.
        details["causes"] = [each for i, each in enumerate(details["causes"]) if each not in details["causes"][:i]]
    if error.code == 500:
        # What the real one answers so is a client's mistake, and a 400 of ours.
        return 400, "BadRequest", text, details
    return error.code, type(error).__name__, text, details


# the deeds


def fresh(kind: Kind, name: str, rng: random.Random) -> Doc:
    metadata: Doc = {"name": name, "labels": {"tier": rng.choice(["web", "db"])}}
    if rng.random() < 0.2:
        metadata["finalizers"] = ["example.com/hold"]
    if rng.random() < 0.1:
        metadata["annotations"] = {"note": "x"}
    pod = {"containers": [{"name": "c", "image": rng.choice(["i", "i:1", "i:latest", ""])}]}
    if rng.random() < 0.3:
        pod["containers"][0]["resources"] = {"requests": {"cpu": rng.choice(["0.1", "100m", "1"])}}  # type: ignore[assignment]
    if rng.random() < 0.2:
        pod |= rng.choice(
            [
                {"schedulingGates": [{"name": "example.com/gate"}]},
                {"terminationGracePeriodSeconds": 0},
                {"restartPolicy": "Never"},
                {"tolerations": [{"key": "k", "operator": "Exists"}]},
                {"nodeSelector": {"disk": "ssd"}},
                {"priorityClassName": "system-node-critical"},
                {"priorityClassName": "unheard-of"},
            ]
        )
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec: dict[Kind, Doc] = {
        CONFIG_MAP: {"data": {"n": str(rng.randrange(3))}},
        POD: {"spec": pod},
        NODE: {"spec": {}, "status": {"capacity": {"cpu": "4", "pods": "10"}}},
        DEPLOYMENT: {
            "spec": {"replicas": rng.randrange(-1, 3), "selector": {"matchLabels": {"app": name}}, "template": template}
        },
        JOB: {"spec": {"completions": rng.randrange(1, 3), "template": {"spec": pod | {"restartPolicy": "Never"}}}},
        SERVICE: {"spec": {"clusterIP": "None", "selector": {"app": name}, "ports": [{"port": rng.choice([80, 0])}]}},
    }
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata} | spec[kind]


def change(doc: Doc, rng: random.Random) -> Doc:
    """Some change to a document, allowed or not."""
    doc = deepcopy(doc)
    metadata = doc["metadata"]
    # A dry run of a deletion leaves us with stamps that nobody may write.
    metadata.pop("deletionTimestamp", None)
    metadata.pop("deletionGracePeriodSeconds", None)
    what = rng.randrange(9)
    if what == 0:
        metadata.setdefault("labels", {})["tier"] = rng.choice(["web", "db", "Not Valid!"])
    elif what == 1:
        metadata.pop("finalizers", None)
    elif what == 2:
        metadata.pop("resourceVersion", None)
    elif what == 3:
        metadata["finalizers"] = ["example.com/hold", "example.com/other"]
    elif what == 4 and "data" in doc:
        doc["data"] = {"n": str(rng.randrange(3))}
    elif what == 5 and "replicas" in doc.get("spec", {}):
        doc["spec"]["replicas"] = rng.randrange(5)
    elif what == 6 and "containers" in doc.get("spec", {}):
        doc["spec"]["containers"][0]["image"] = rng.choice(["i:2", "i:3", ""])
    elif what == 7 and "spec" in doc:
        doc["spec"]["unschedulable"] = True
    elif "status" in doc:
        doc["status"] = {"phase": "Running"} if doc["kind"] == "Pod" else {}
    return doc


PATCHES: list[tuple[PatchType, Any]] = [
    (PatchType.MERGE, {"metadata": {"labels": {"tier": "patched"}}}),
    (PatchType.MERGE, {"metadata": {"labels": None, "finalizers": None}}),
    (PatchType.STRATEGIC, {"metadata": {"annotations": {"by": "strategic"}}}),
    (PatchType.STRATEGIC, {"metadata": {"finalizers": ["example.com/more"]}}),
    (PatchType.STRATEGIC, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/hold"]}}),
    (PatchType.JSON, [{"op": "remove", "path": "/metadata/labels/tier"}]),
    (PatchType.JSON, [{"op": "test", "path": "/metadata/labels/tier", "value": "web"}]),
    (PatchType.JSON, [{"op": "add", "path": "/metadata/labels/new", "value": "1"}]),
    (PatchType.JSON, [{"op": "dance", "path": "/metadata/labels/new", "value": "1"}]),
    (PatchType.MERGE, {"spec": {"replicas": 4}}),
    (PatchType.MERGE, {"spec": {"replicas": -4}}),
    (PatchType.MERGE, {"metadata": {"resourceVersion": "1"}}),
    (PatchType.MERGE, {"metadata": {"name": "other"}}),
]

OPTIONS: list[Doc | None] = [
    None, None, {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": 5}, {"propagationPolicy": "Foreground"},
    {"propagationPolicy": "Orphan"}, {"propagationPolicy": "Background"}, {"preconditions": {"uid": "other"}},
    {"preconditions": {"resourceVersion": "1"}}, {"dryRun": ["All"]}, {"propagationPolicy": "Sometimes"},
]  # fmt: skip

SELECTIONS: list[dict[str, str]] = [
    {}, {"label_selector": "tier=web"}, {"label_selector": "tier notin (web)"}, {"field_selector": "metadata.name=a"},
    {"field_selector": "spec.nodeName="}, {"label_selector": "a=b=c"}, {"field_selector": "what=ever"},
]  # fmt: skip


def deed(rng: random.Random) -> tuple[str, Deed]:
    """One request, as a function of the side that makes it."""
    kind = rng.choice([CONFIG_MAP, POD, POD, DEPLOYMENT, NODE, JOB, SERVICE])
    name = rng.choice(NAMES)
    seed = rng.getrandbits(32)
    what = rng.choice(["create", "create", "update", "update", "status", "patch", "delete", "bind", "list", "scale"])

    async def act(side: Side) -> Any:
        own = random.Random(seed)
        if what == "create":
            return await side.write(Verb.CREATE, kind, name, fresh(kind, side.called(kind, name), own))
        if what in ("update", "status"):
            known = side.known.get((kind, side.called(kind, name)))
            if known is None:
                return await side.get(kind, name)
            subresource = "status" if what == "status" and "status" in kind.subresources else ""
            return await side.write(Verb.UPDATE, kind, name, change(known, own), subresource=subresource)
        if what == "patch":
            type_, patch = own.choice(PATCHES)
            return await side.write(Verb.PATCH, kind, name, patch, patch_type=type_)
        if what == "delete":
            return await side.write(Verb.DELETE, kind, name, own.choice(OPTIONS))
        if what == "bind":
            target = {"kind": "Node", "name": own.choice(["n1", "n2"])}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            return await side.write(Verb.CREATE, POD, name, body, subresource="binding")
        if what == "scale":
            patch = {"spec": {"replicas": own.randrange(-1, 4)}}
            return await side.write(Verb.PATCH, DEPLOYMENT, name, patch, subresource="scale")
        return await side.list(kind, **own.choice(SELECTIONS))

    return f"{what} {kind.resource} {name} (seed {seed})", act


@pytest.mark.parametrize("seed", SEEDS)
async def test_the_same_deeds_get_the_same_answers(control_plane: ControlPlane, seed: int) -> None:
    rng = random.Random(seed)
    namespace = f"twin-{uuid.uuid4().hex[:8]}"
    real = KubeApi(Connection.to(control_plane.server, token=control_plane.token, ca=control_plane.ca))
    twins = [Side(StoreApi(Store(clock=time.time, rng=rng)), namespace), Side(real, namespace)]
    told = []
    try:
        for side in twins:
            await side.api.perform(Write(Verb.CREATE, NAMESPACE, "", namespace, {"metadata": {"name": namespace}}))
        starts = [(await side.api.list(POD, Query(namespace=namespace))).resource_version for side in twins]
        for _ in range(DEEDS):
            title, act = deed(rng)
            ours, theirs = [await act(side) for side in twins]
            told.append(title)
            assert ours == theirs, f"after {told[:-1]}\ndifferent: {title}"
        watched = [(side, kind, start) for kind in (POD, DEPLOYMENT) for side, start in zip(twins, starts, strict=True)]
        stories = await asyncio.gather(*(heard(*each) for each in watched))
        assert stories[0::2] == stories[1::2]
    finally:
        await cleared(twins[1])
        await real.close()


async def heard(side: Side, kind: Kind, start: str) -> list[Any]:
    """Everything that a watch replays, but for two things: changes of managedFields alone, which we do not keep, and
    the mark of deletion on a pod that is gone in the same breath: the real one writes mark and end as two versions."""
    stream = side.api.watch(kind, Query(namespace=side.namespace, resource_version=start), timeout=1, bookmarks=False)
    events: list[Any] = []
    last: dict[str, Any] = {}
    async for event in stream:
        doc = comparable(event.doc)
        name = doc["metadata"]["name"]
        if event.type == "DELETED" and events and events[-1] == ("MODIFIED", doc):
            events.pop()
        if event.type != "MODIFIED" or last.get(name) != doc:
            events.append((event.type, doc))
        last[name] = doc
    return events


async def cleared(side: Side) -> None:
    """Nodes are for all: leave none behind."""
    for name in NAMES:
        await side.write(Verb.PATCH, NODE, name, {"metadata": {"finalizers": None}})
        await side.write(Verb.DELETE, NODE, name)
