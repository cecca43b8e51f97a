"""Carries out stories of Volcano Jobs on a real API server with Volcano's own programs, and writes down what came of
each step, as `fairlead replay` reads it.

The recorder is the kubelet: bound pods change phase only when a step says so, and a pod that is being deleted vanishes
a moment later. A step is over when no Job, pod or PodGroup of the story has changed for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from fairlead.client.client import KubeApi
from fairlead.client.port import Query
from fairlead.core.model import kinds as k
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.errors import ApiError, NotFound
from fairlead.volcano.kinds import VC_COMMAND, VC_JOB, VC_POD_GROUP
from fairlead.volcano.replay.story_view import StoryView
from fairlead.volcano.replay.story_world import STORY_KINDS, has_ended, pod_status
from tests.support.real.contenders import make_namespace

Doc = dict[str, Any]

_VANISHING = 0.25
_NOTICED = 0.15
"""Seconds without a change after which the controllers have seen what became of a pod: what they do about it does not
depend on which of several pods they see first."""
_PATIENCE = 90.0
_SHOWN = (
    VC_JOB, VC_POD_GROUP, k.POD, k.SERVICE, k.CONFIG_MAP, k.SECRET, k.NETWORK_POLICY, k.PERSISTENT_VOLUME_CLAIM,
    k.EVENT,
)  # fmt: skip
_WATCHED = (VC_JOB, VC_POD_GROUP, k.POD)


class _Snapshot:
    """A story's namespace at one moment, where StoryView looks for a world: what it reads of the world's Store."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.store = self
        self._docs: dict[Kind, Sequence[Doc]] = {}

    def place_of(self, kind: Kind) -> str:
        return self.namespace if kind.namespaced else ""

    def list(self, kind: Kind, namespace: str = "") -> Iterator[Doc]:
        return iter(self._docs.get(kind, ()))

    async def take(self, api: KubeApi) -> None:
        found = await asyncio.gather(*(api.list(kind, Query(namespace=self.namespace)) for kind in _SHOWN))
        self._docs = dict(zip(_SHOWN, (one.items for one in found), strict=True))


def _as_recorded(state: Doc) -> Doc:
    """Each phase once among the conditions, where it came last: Volcano 1.14 adds one with each write."""
    for job in (state.get("jobs") or {}).values():
        phases = [one["status"] for one in job["status"].get("conditions") or ()]
        if phases:
            job["status"]["conditions"] = list(dict.fromkeys(reversed(phases)))[::-1]
    return state


class JobRecorder:
    """Records stories, each in a namespace of its own, as many at once as there are."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._moved: dict[str, float] = defaultdict(time.monotonic)
        self._phases: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._going: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        watching = [asyncio.create_task(self._watch(kind)) for kind in _WATCHED]
        try:
            yield
        finally:
            for task in (*watching, *self._going):
                task.cancel()
            await asyncio.gather(*watching, *self._going, return_exceptions=True)

    async def _watch(self, kind: Kind) -> None:
        version = (await self._api.list(kind)).resource_version
        async for event in self._api.watch(kind, Query(resource_version=version)):
            if event.type == "BOOKMARK":
                continue
            metadata = event.doc["metadata"]
            self._moved[metadata["namespace"]] = time.monotonic()
            if kind is VC_JOB:
                self._pass(metadata, ((event.doc.get("status") or {}).get("state") or {}).get("phase"))
            if kind is k.POD and metadata.get("deletionTimestamp") and event.type != "DELETED":
                task = asyncio.create_task(self._vanish(metadata))
                self._going.add(task)
                task.add_done_callback(self._going.discard)

    def _pass(self, metadata: Doc, phase: str | None) -> None:
        passed = self._phases[metadata["namespace"]][metadata["name"]]
        if phase and passed[-1:] != [phase]:
            passed.append(phase)

    async def _vanish(self, metadata: Doc) -> None:
        await asyncio.sleep(_VANISHING)
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        options["preconditions"] = {"uid": metadata["uid"]}
        with suppress(ApiError):
            await self._api.perform(Write(Verb.DELETE, k.POD, metadata["namespace"], metadata["name"], options))

    # ---- a story ----

    async def record(self, story: Doc, telling: int, quiet: float) -> Doc:
        """The story with what the API answered and what stood in it after each step. `quiet` is how many seconds
        nothing may change before a step is over."""
        namespace = f"{story['namespace']}-{telling}"
        await make_namespace(self._api, namespace)
        snapshot = _Snapshot(namespace)
        view = StoryView(snapshot)  # type: ignore[arg-type]
        steps = []
        for step in story["steps"]:
            answer = await self._do(namespace, step)
            steps.append({**step, **answer, **await self._settled(namespace, quiet)})
            await snapshot.take(self._api)
            steps[-1]["after"] = _as_recorded(view.state()) | {"phases": self._passed(namespace)}
            if steps[-1].get("unsettled"):
                break
        await self._clear(namespace)
        return {**story, "namespace": namespace, "steps": steps}

    def _passed(self, namespace: str) -> dict[str, list[str]]:
        """The phases since the last look."""
        passed = {job: list(phases) for job, phases in self._phases[namespace].items()}
        for phases in self._phases[namespace].values():
            del phases[:-1]
        return passed

    async def _settled(self, namespace: str, quiet: float) -> Doc:
        self._moved[namespace] = time.monotonic()
        ends = time.monotonic() + _PATIENCE
        while (rest := self._moved[namespace] + quiet - time.monotonic()) > 0:
            if time.monotonic() > ends:
                return {"unsettled": True}
            await asyncio.sleep(rest)
        return {}

    async def _do(self, namespace: str, step: Doc) -> Doc:
        """What the API answered, as recordings have it."""
        try:
            return await self._perform(namespace, step)
        except ApiError as error:
            return {"refused": {"code": error.code, "message": error.message}}

    async def _perform(self, namespace: str, step: Doc) -> Doc:
        api = self._api
        match step["do"]:
            case "create":
                kind = STORY_KINDS[step["object"]["kind"]]
                name = step["object"]["metadata"]["name"]
                await api.perform(Write(Verb.CREATE, kind, namespace, name, step["object"]))
            case "pods":
                for name in step["pods"]:
                    await self._set_phase(namespace, name, step)
                    await self._settled(namespace, _NOTICED)
            case "delete":
                options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
                await api.perform(Write(Verb.DELETE, STORY_KINDS[step["kind"]], namespace, step["name"], options))
            case "evict":
                body = {"apiVersion": "policy/v1", "kind": "Eviction"}
                body |= {"metadata": {"name": step["name"], "namespace": namespace}}
                await api.perform(Write(Verb.CREATE, k.POD, namespace, step["name"], body, subresource="eviction"))
            case "command":
                await self._command(namespace, step["action"], step["target"])
            case "patch":
                kind, patch = STORY_KINDS[step["kind"]], step["patch"]
                dialect = PatchType.JSON if isinstance(patch, list) else PatchType.MERGE
                await api.perform(Write(Verb.PATCH, kind, namespace, step["name"], patch, patch_type=dialect))
        return {}

    async def _set_phase(self, namespace: str, name: str, step: Doc) -> None:
        with suppress(NotFound):
            pod = await self._api.get(k.POD, namespace, name)
            if pod["spec"].get("nodeName") and not has_ended(pod):
                body = {"status": pod_status(pod, step, time.time())}
                merge = PatchType.MERGE
                write = Write(Verb.PATCH, k.POD, namespace, name, body, subresource="status", patch_type=merge)
                await self._api.perform(write)

    async def _command(self, namespace: str, action: str, target: Doc) -> None:
        kind = STORY_KINDS[target["kind"]]
        try:
            uid = (await self._api.get(kind, namespace, target["name"]))["metadata"]["uid"]
        except NotFound:
            uid = "0"
        about = {"apiVersion": kind.api_version, "kind": kind.kind, "name": target["name"], "uid": uid}
        body = {
            "apiVersion": VC_COMMAND.api_version, "kind": "Command", "action": action,
            "metadata": {"generateName": f"{target['name']}-", "namespace": namespace},
            "target": {**about, "controller": True},
        }  # fmt: skip
        await self._api.perform(Write(Verb.CREATE, VC_COMMAND, namespace, "", body))

    async def _clear(self, namespace: str) -> None:
        for job in (await self._api.list(VC_JOB, Query(namespace=namespace))).items:
            with suppress(NotFound):
                await self._api.perform(Write(Verb.DELETE, VC_JOB, namespace, job["metadata"]["name"]))
