"""A real cluster's state, saved over its API and restored into one of ours."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.cluster.store.snapshot import RedactionOptions, collect, write_snapshot
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import NAMESPACE, NODE, POD
from fairlead.testing.builders import namespace, node, pod
from fairlead.testing.harness import Harness
from tests.support.real.control_plane import ControlPlane

pytestmark = pytest.mark.kube


async def _saved(plane: ControlPlane, name: str) -> list[Doc]:
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    try:
        place = pod("p", name).on(name).asks(cpu="1").doc()
        for kind, doc in ((NAMESPACE, namespace(name).doc()), (NODE, node(name).doc()), (POD, place)):
            where = doc["metadata"].get("namespace", "")
            await api.perform(Write(Verb.CREATE, kind, where, doc["metadata"]["name"], doc))
        return await collect(api, RedactionOptions(private=True))
    finally:
        await api.perform(Write(Verb.DELETE, POD, name, "p", {"gracePeriodSeconds": 0}))
        await api.perform(Write(Verb.DELETE, NODE, "", name))
        await api.close()


def test_a_real_cluster_goes_on_as_one_of_ours(control_plane: ControlPlane, tmp_path: Path) -> None:
    name = f"snap-{uuid.uuid4().hex[:8]}"
    documents = asyncio.run(_saved(control_plane, name))
    path = tmp_path / "real.snapshot"
    write_snapshot(path, documents, now=1_800_000_000.0, redaction=RedactionOptions(private=True))
    cluster = Harness.from_snapshot(path)
    cluster.run(5)
    assert cluster.pod("p", namespace=name)["status"]["phase"] == "Running"
    assert cluster.bindings()[f"{name}/p"] == name
    assert not any("managedFields" in doc["metadata"] for doc in documents)
