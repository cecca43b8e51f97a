"""A training job of four pods that needs four whole nodes, of which three are partly taken.

It waits as a whole: the free node is not taken by one pod of it. Its explanation is the one of `fairlead explain job
train --changes`. When the job before it has ended, all four pods start in one instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.assembly.applying import as_written
from fairlead.cli.explain.commands import show_group
from fairlead.errors import FairleadError
from fairlead.testing.asking import answer_of
from fairlead.testing.builders import job, node, pod
from fairlead.testing.harness import Harness

if TYPE_CHECKING:
    from rich.console import Console

    from fairlead.core.model.flow import Doc

GPU = "nvidia.com/gpu"
GANG = "scheduling.fairlead.io/gang"
MEMBERS = 4


def show_gang(console: Console) -> None:
    """Print why the job waits, what would help, and how it starts."""
    cluster = Harness(nodes=[node(f"gpu-{number}").offers({GPU: "8"}, cpu="32") for number in range(MEMBERS)])
    cluster.apply(job("sweep").times(3, at_once=3).of(pod("sweep").asks({GPU: "6"}).running_for("10m")))
    cluster.run(1)
    trainer = pod("train").asks({GPU: "8"}).running_for("30m").annotated({GANG: "auto"})
    cluster.apply(job("train").times(MEMBERS, at_once=MEMBERS).of(trainer))
    cluster.run(1)
    console.print("The Job sweep holds 6 GPUs on each of three nodes. Each of train's four pods needs a whole node.")
    console.print("\n$ fairlead explain job train --changes")
    show_group(console, _explanation(cluster))
    if any(one["spec"].get("nodeName") for one in _members(cluster)):
        raise FairleadError("a part of the gang was placed")
    cluster.until(lambda: any(one["spec"].get("nodeName") for one in _members(cluster)))
    cluster.settle()
    started = [cluster.times(one["metadata"]["name"]) for one in _members(cluster)]
    times = {one.started for one in started if one is not None}
    if len(started) != MEMBERS or len(times) != 1 or None in times:
        raise FairleadError("the gang did not start as a whole")
    console.print(f"\nTen minutes later sweep has ended, and all {MEMBERS} pods of train start at once:")
    for one in sorted(_members(cluster), key=lambda one: str(one["spec"]["nodeName"])):
        console.print(f"  {one['metadata']['name']} → {one['spec']['nodeName']}")


def _members(cluster: Harness) -> list[Doc]:
    return [one for one in cluster.list("pods") if one["metadata"]["labels"].get("job-name") == "train"]


def _explanation(cluster: Harness) -> Doc:
    """The Explanation of the job's group, with the changes that would help."""
    scheduler = cluster.assembled.scheduler
    explained = None if scheduler is None else scheduler.explain_group("default", "train")
    if explained is None:
        raise FairleadError("the scheduler knows no job train")
    live = cluster.get("job", "train")
    if live is None:
        raise FairleadError("the job train is gone")
    question = {"kind": "SimulateQuestion", "changes": True, "commands": True}
    return {**explained.to_document(), "changes": answer_of(cluster, question, [as_written(live)]).get("changes", [])}
