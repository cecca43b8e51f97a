"""Gangs on a real kube-apiserver with the gang features on: the same groups start under both schedulers. So they do
on the next Kubernetes, whose groups are v1beta1."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import JOB, POD, POD_GROUP, POD_GROUP_BETA, Kind
from tests.support.real.control_plane import ControlPlane
from tests.support.real.gang_contenders import kube_scheduler, on_a_real_server, ours
from tests.support.real.gang_stories import NEXT_STORIES, STORIES, Cluster, Story

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=120)]


QUIET = (2.5, 4.5)
"""Seconds without a change after which a story goes on, from one telling to the next: one that ends differently is told
again, with more time to settle."""


async def _told(api: KubeApi, groups: Kind, stories: Sequence[Story], quiet: float) -> list[list[Any]]:
    """What shows in every story."""
    cluster, outcomes = Cluster(api, groups, quiet=quiet), []
    for story in stories:
        outcomes.append(await story(cluster))
        await cluster.clear()
    return outcomes


async def _tell_both(directory: Path, stories: Sequence[Story], groups: Kind) -> None:
    """Tell stories under both schedulers, each with a control plane of its own: they must end alike."""
    async with AsyncExitStack() as opened:
        apis = await asyncio.gather(
            *(
                opened.enter_async_context(on_a_real_server(directory / name, schedules, groups))
                for name, schedules in (("theirs", kube_scheduler), ("ours", ours))
            )
        )
        for api in apis:
            await Cluster(api, groups).furnish()
        for quiet in QUIET:
            both = await asyncio.gather(*(_told(api, groups, stories, quiet) for api in apis))
            found = [(story, *ends) for story, *ends in zip(stories, *both, strict=True) if ends[0] != ends[1]]
            stories = [story for story, *_ in found]
            if not stories:
                return
    for story, theirs, mine in found:
        assert mine == theirs, story.__doc__


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
    await _tell_both(tmp_path, STORIES, POD_GROUP)


async def test_the_same_groups_start_on_the_next_kubernetes(tmp_path: Path) -> None:
    await _tell_both(tmp_path, NEXT_STORIES, POD_GROUP_BETA)
