"""Runs a random cluster through the real koord-scheduler, and writes down what was decided, as `fairlead replay` reads
it.

A pod is held back by a scheduling gate until the scheduler's quotas count it: they learn of pods in a thread of their
own, and a pod that is tried before that is refused for a share that does not yet hold its request.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import yaml

from fairlead.client.client import KubeApi
from fairlead.core.model import kinds as k
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.koordinator.config.preset import KOORDINATOR_PRESET
from fairlead.koordinator.kinds import KOORD_DEVICE, KOORD_ELASTIC_QUOTA, KOORD_NODE_TOPOLOGY
from tests.support.fuzz.recorder import Doc, Recorder
from tests.support.fuzz.worlds import FuzzCluster

_GATE = "fuzz.example.com/counted"
_COUNTED = 0.4
"""Seconds until quotas count a pod: nothing shows it."""


def koordinator_config() -> Doc:
    """The profile that Koordinator ships, with Reservation under reserve; each pod is tried once."""
    config: Doc = yaml.safe_load(KOORDINATOR_PRESET)
    config |= {"percentageOfNodesToScore": 100, "podInitialBackoffSeconds": 600, "podMaxBackoffSeconds": 600}
    config["leaderElection"] = {"leaderElect": False}
    reserve = config["profiles"][0]["plugins"]["reserve"]["enabled"]
    if not any(one["name"] == "Reservation" for one in reserve):
        reserve.insert(0, {"name": "Reservation"})
    return config


class KoordinatorRecorder(Recorder):
    made_in_a_world = (k.POD, KOORD_ELASTIC_QUOTA, KOORD_DEVICE, KOORD_NODE_TOPOLOGY, k.NODE)

    def __init__(self, api: KubeApi, log: Path, config: Doc) -> None:
        super().__init__(api, log)
        self._config = config

    async def record(self, world: FuzzCluster, *, settle: float = 0.5) -> Doc:
        start = time.time()
        recorded = await super().record(world, settle=settle)
        for step, decision in enumerate(recorded["decisions"]):
            decision |= {"step": step, "tried": 1}
        return {**recorded, "config": self._config, "gates": {}, "keep": False, "start": start}

    async def _make(self, doc: Doc) -> Doc:
        if doc["kind"] != "Pod":
            return await super()._make(doc)
        gated = {**doc, "spec": {**doc["spec"], "schedulingGates": [{"name": _GATE}]}}
        stored = await super()._make(gated)
        await asyncio.sleep(_COUNTED)
        metadata = stored["metadata"]
        # The condition that says so goes first: it would be read as a refusal.
        await self._patch_pod(metadata["name"], {"status": {"conditions": []}}, subresource="status")
        freed = await self._patch_pod(metadata["name"], {"spec": {"schedulingGates": None}})
        return {**freed, "apiVersion": "v1", "kind": "Pod"}

    async def _patch_pod(self, name: str, merge: Doc, subresource: str = "") -> Doc:
        write = Write(Verb.PATCH, k.POD, "default", name, merge, subresource=subresource, patch_type=PatchType.MERGE)
        return await self._api.perform(write)

    async def _say_more(self, decision: Doc, tried: Doc, decided: Doc) -> None:
        """What the scheduler wrote on the pod."""
        before = tried["metadata"].get("annotations") or {}
        after = decided["metadata"].get("annotations") or {}
        decision["annotations"] = {name: value for name, value in after.items() if before.get(name) != value}
