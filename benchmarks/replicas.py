"""`python -m benchmarks.replicas`: several `fairlead scheduler` processes on one embedded API, in three ways to share.

Pods are created at once and dealt to the replicas; together they fill the cluster to the given share. The table says
how many pods a second got a node, how long they waited, how many Bindings the API refused, and how much CPU all
processes used (the API, the replicas and what creates pods).
"""

from __future__ import annotations

import json
import resource
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean

import click
from rich.table import Table

from fairlead.console.terminal import output as standard_output
from fairlead.console.terminal import put_table
from tests.support.processes.replicas import CPUS, OPTIMISTIC, PREFERRED, SHARDS, share_nodes

RESULTS = Path("build/bench-replicas.json")


@dataclass(frozen=True, slots=True)
class ReplicasRow:
    way: str
    replicas: int
    pods_per_second: float
    mean_wait: float
    p99_wait: float
    conflicts: int
    cpu_seconds: float


@click.command()
@click.option("--nodes", default=40, show_default=True, help=f"Of {CPUS} cpus each; a pod takes one.")
@click.option("--share", default=1.0, show_default=True, help="How much of all cpus the pods take.")
@click.option("--replicas", default="1,2,4,8", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def main(nodes: int, share: float, replicas: str, output: Path) -> None:
    """Measure several replicas on one embedded API. It fails if a pod is lost or a node overcommitted."""
    pods = int(nodes * CPUS * share)
    rows = [_measured(way, int(count), nodes, pods) for count in replicas.split(",") for way in _ways(int(count))]
    table = Table("ways", "replicas", "pods/s", "mean wait s", "p99 wait s", "conflicts", "CPU s")
    for row in rows:
        table.add_row(
            row.way,
            str(row.replicas),
            f"{row.pods_per_second:.0f}",
            f"{row.mean_wait:.2f}",
            f"{row.p99_wait:.2f}",
            str(row.conflicts),
            f"{row.cpu_seconds:.1f}",
        )
    put_table(standard_output(), table)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def _ways(replicas: int) -> tuple[str, ...]:
    return (OPTIMISTIC,) if replicas == 1 else (OPTIMISTIC, PREFERRED, SHARDS)


def _measured(way: str, replicas: int, nodes: int, pods: int) -> ReplicasRow:
    before = _cpu_seconds()
    with tempfile.TemporaryDirectory(prefix="fairlead-replicas-") as directory:
        outcome = share_nodes(Path(directory), way=way, replicas=replicas, nodes=nodes, pods=pods)
    if len(outcome.waits) != pods or outcome.full > CPUS:
        raise AssertionError(f"{len(outcome.waits)} of {pods} pods placed, {outcome.full} on one node of {CPUS} cpus")
    waits = sorted(outcome.waits)
    return ReplicasRow(
        way,
        replicas,
        pods / outcome.seconds,
        mean(waits),
        waits[int((len(waits) - 1) * 0.99)],
        outcome.conflicts,
        _cpu_seconds() - before,
    )


def _cpu_seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
