"""Gangs on a real kube-apiserver with the gang features on: the same groups start under both schedulers. So they do
on the next Kubernetes, whose groups are v1beta1."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import JOB, POD, POD_GROUP, POD_GROUP_BETA, Kind
from tests.kube.control_plane import ControlPlane
from tests.kube.gang_contenders import Schedules, kube_scheduler, on_a_real_server, ours
from tests.kube.gang_stories import NEXT_STORIES, STORIES, Cluster, Story

pytestmark = pytest.mark.kube


async def _told_under(
    directory: Path, schedules: Schedules, stories: Sequence[Story] = STORIES, groups: Kind = POD_GROUP
) -> dict[str, list[Any]]:
    """What shows in every story under one scheduler."""
    outcomes: dict[str, list[Any]] = {}
    async with on_a_real_server(directory, schedules, groups) as api:
        cluster = Cluster(api, groups)
        await cluster.furnish()
        for story in stories:
            outcomes[story.__name__] = await story(cluster)
            await cluster.clear()
    return outcomes


def _owned(name: str, owner: dict[str, Any], **labels: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}
    metadata = {"name": name, "annotations": {"scheduling.fairlead.io/gang": "auto"}, "labels": labels}
    return {"metadata": metadata | {"ownerReferences": [owner]}, "spec": {"containers": [container]}}


async def test_a_job_says_how_many_of_its_pods_start_together(tmp_path: Path) -> None:
    """Jobs are watched when the first pod needs one. A JobSet, which this server does not know, stalls nobody."""
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    spec = {"parallelism": 3, "completions": 3, "template": template}
    directory = tmp_path / "plane"
    await asyncio.to_thread(directory.mkdir)
    plane = ControlPlane(directory)
    await asyncio.to_thread(plane.start)
    api = KubeApi(load_kubeconfig(plane.kubeconfig))
    try:
        async with ours(plane):
            cluster = Cluster(api)
            await cluster.furnish()
            job = await api.perform(
                Write(Verb.CREATE, JOB, "default", "train", {"metadata": {"name": "train"}, "spec": spec})
            )
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": job["metadata"]["uid"],
                     "controller": True}  # fmt: skip
            await cluster.create(POD, _owned("js-0", owner, **{"jobset.sigs.k8s.io/jobset-name": "js"}))
            for number in range(2):
                await cluster.create(POD, _owned(f"train-{number}", owner))
            assert (await cluster.look(groups=False)).running == {}
            await cluster.create(POD, _owned("train-2", owner))
            assert (await cluster.look(groups=False)).running == {"train": 3}
    finally:
        await api.close()
        await asyncio.to_thread(plane.stop)


async def test_the_same_groups_start(tmp_path: Path) -> None:
    theirs, mine = await asyncio.gather(
        _told_under(tmp_path / "theirs", kube_scheduler), _told_under(tmp_path / "ours", ours)
    )
    for story in STORIES:
        assert mine[story.__name__] == theirs[story.__name__], story.__doc__


async def test_the_same_groups_start_on_the_next_kubernetes(tmp_path: Path) -> None:
    theirs, mine = await asyncio.gather(
        _told_under(tmp_path / "theirs", kube_scheduler, NEXT_STORIES, POD_GROUP_BETA),
        _told_under(tmp_path / "ours", ours, NEXT_STORIES, POD_GROUP_BETA),
    )
    for story in NEXT_STORIES:
        assert mine[story.__name__] == theirs[story.__name__], story.__doc__
