"""Two teams with a Volcano Queue each, of weights 1 and 3, and more work than the 32 GPUs can hold.

A team alone uses everything; when the other comes, GPUs that become free are shared by weight; when its work is done,
the first has everything again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fairlead.console.terminal import line
from fairlead.errors import FairleadError
from fairlead.testing.builders import job, node, pod, podgroup, queue
from fairlead.testing.harness import Harness

if TYPE_CHECKING:
    from rich.console import Console

GPU = "nvidia.com/gpu"
MINUTES = (5, 15, 25, 35, 45)
SHARES = [(32, 0), (8, 24), (8, 24), (8, 24), (32, 0)]
"""The GPUs of teaching and research at those minutes: by weights 1 and 3 while both have work."""


def show_queues(console: Console) -> None:
    """Print who holds how many GPUs over 45 minutes."""
    cluster = Harness(
        nodes=[node(f"gpu-{number}").offers({GPU: "8"}, cpu="32") for number in range(4)], volcano="default"
    )
    cluster.apply(queue("teaching").weighing(1), queue("research").weighing(3))
    _submit(cluster, "teaching", pods=96)
    console.print(
        "Queue teaching has weight 1, queue research 3. Each pod takes one GPU for ten minutes. teaching submits 96 "
        "pods at once, research 72 five minutes later."
    )
    found, now = [], 0
    for minute in MINUTES:
        cluster.run((minute - now) * 60)
        now = minute
        held = _held(cluster)
        found.append((held["teaching"], held["research"]))
        bar = ("█" * held["teaching"], "cyan"), ("▒" * held["research"], "magenta")
        shares = f"teaching {held['teaching']:2}, research {held['research']:2}"
        console.print(line(f"  minute {minute:2}  ", *bar, f"  {shares}"))
        if minute == MINUTES[0]:
            _submit(cluster, "research", pods=72)
    if found != SHARES:
        raise FairleadError(f"the queues had {found}, not {SHARES}")


def _submit(cluster: Harness, team: str, *, pods: int) -> None:
    work = pod(team).asks({GPU: "1"}, cpu="1").running_for("10m").scheduled_by("volcano").in_group(team)
    cluster.apply(podgroup(team).in_queue(team), job(team).times(pods, at_once=32).of(work))


def _held(cluster: Harness) -> Counter[str]:
    """How many GPUs the running pods of each team have."""
    running = (one for one in cluster.list("pods") if one["status"].get("phase") == "Running")
    return Counter(str(one["metadata"]["labels"]["job-name"]) for one in running)
