"""`python -m benchmarks`: measure everything, show a table, write build/bench.json.

A missed bar is shown and fails nothing: a shared machine may have a bad day. What fails is a benchmark that does not do
its work.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks import (
    api,
    claims,
    clients,
    gangs,
    jobs,
    koordinator,
    plugins,
    questions,
    scheduling,
    virtual_life,
    volcano,
    what_if,
    whole,
)
from benchmarks.row import Row
from fairlead.console.terminal import line, put_table
from fairlead.console.terminal import output as standard_output
from fairlead.runtime.collecting import collect_rarely

RESULTS = Path("build/bench.json")
Bench = Callable[[], Iterable[Row]]
BENCHES: list[tuple[tuple[str, ...], Bench]] = [
    (("SchedulingBasic/5000Nodes",), scheduling.bench_basic),
    (("SchedulingBasic/5000Nodes/AllDistinct",), plugins.bench_distinct),
    (plugins.rows_of("SchedulingNodeAffinity"), plugins.bench_node_affinity),
    (plugins.rows_of("SchedulingPodAffinity"), plugins.bench_pod_affinity),
    (plugins.rows_of("SchedulingPodAntiAffinity"), plugins.bench_pod_anti_affinity),
    (plugins.rows_of("TopologySpreading"), plugins.bench_topology_spreading),
    (("PreemptionBasic/1000Nodes", "PreemptionBasic/5000Nodes"), plugins.bench_preemption),
    (("ClaimTemplates/500Nodes",), claims.bench_templates),
    (tuple(f"ClaimSteadyState/{name}" for name in claims.BARS), claims.bench_steady_state),
    (("ClaimInVain/100Nodes",), claims.bench_backtracking),
    (("VirtualRuntime/PodLife",), scheduling.bench_virtual_runtime),
    (("VirtualRuntime/IdleHour",), scheduling.bench_idle_hour),
    (("VirtualLife/1000Nodes",), virtual_life.bench_life),
    (("VirtualLife/openb-x10",), virtual_life.bench_openb),
    (("VirtualLife/memory",), virtual_life.bench_memory),
    (("GangOf1000/5000Nodes",), gangs.bench_large_gang),
    (("GangInOneRack/5000Nodes",), gangs.bench_rack),
    (("GangInNoRack/5000Nodes",), gangs.bench_no_rack),
    (("1000GangsOf10/5000Nodes",), gangs.bench_many_gangs),
    (tuple(f"VolcanoGangs/{jobs}x{size}" for jobs, size in volcano.GANGS), volcano.bench_gangs),
    (jobs.rows_of_jobs(), jobs.bench_jobs),
    (koordinator.rows_of_koordinator(), koordinator.bench_koordinator),
    (("VolcanoRound/HalfFits", "VolcanoRound/NothingFits"), volcano.bench_round),
    (tuple(f"ReclaimLargeJobs/{nodes}Nodes" for nodes in volcano.RECLAIM_BARS), volcano.bench_reclaim),
    (("api.creates.memory", "api.creates.memory.equal"), api.bench_creates_in_memory),
    (("api.creates.journal", "api.creates.journal.batched"), api.bench_creates_with_journal),
    (("api.creates.rules", "api.creates.rules.loops"), api.bench_creates_with_rules),
    (("api.watch",), api.bench_watch_events),
    (("api.creates.https",), api.bench_creates_over_https),
    (("api.start", "api.memory.opened", "api.memory.created"), api.bench_start_from_journal),
    (("api.apply",), clients.bench_apply),
    (("api.creates.custom",), clients.bench_custom_creates),
    (("api.watchers",), clients.bench_watchers),
    (("explain.answers", "explain.slowdown"), questions.bench_questions),
    ((*what_if.ROWS, "answers.slowdown"), what_if.bench_what_if),
    (("up.ready",), clients.bench_ready),
    (("up.start", "up.memory"), whole.bench_whole_cluster),
]
"""The rows that each function gives: known without running it."""


@click.command("benchmarks")
@click.option("--only", metavar="NAME", help="Only rows whose name contains this.")
@click.option("--list", "listing", is_flag=True, help="Name all rows and measure none.")
@click.option("--profile", type=int, metavar="N", help="Show the N functions of each row that take most time.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def main(only: str | None, listing: bool, profile: int | None, output: Path) -> None:
    """Measure fairlead against the numbers it holds itself to."""
    chosen = [(names, bench) for names, bench in BENCHES if only is None or any(_matches(only, n) for n in names)]
    if not chosen:
        raise click.UsageError(f"no row is called {only}; --list names them all")
    if listing:
        click.echo("\n".join(name for names, _ in chosen for name in names if only is None or _matches(only, name)))
        return
    rows = _measure(chosen, profile)
    rows = [row for row in rows if only is None or _matches(only, row.name)]
    console = standard_output()
    put_table(console, _table(rows))
    for row in rows:
        console.print(line((row.name, "bold"), f" {row.note}"))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps([asdict(row) | {"met": _met(row)} for row in rows], indent=2) + "\n")
    click.echo(f"written to {output}")


def _matches(wanted: str, name: str) -> bool:
    return wanted.lower() in name.lower()


def _measure(chosen: list[tuple[tuple[str, ...], Bench]], profile: int | None) -> list[Row]:
    rows: list[Row] = []
    console = Console(stderr=True)
    for number, (names, bench) in enumerate(chosen, 1):
        collect_rarely()  # as in the processes that schedule
        began = time.perf_counter()
        with console.status(f"{number} of {len(chosen)}: {', '.join(names)}"):
            rows += bench() if profile is None else _profiled(bench, profile)
        if sys.stderr.isatty():
            console.print(f"{number} of {len(chosen)}: {', '.join(names)}: {time.perf_counter() - began:.1f} s")
    return rows


def _profiled(bench: Bench, count: int) -> list[Row]:
    """The rows of a bench, which take longer while somebody looks; what took the time is shown."""
    profile = cProfile.Profile()
    rows = profile.runcall(lambda: list(bench()))
    pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(count)
    return rows


def _met(row: Row) -> bool:
    return row.value >= row.bar if row.higher_is_better else row.value <= row.bar


def _table(rows: list[Row]) -> Table:
    table = Table()
    for heading in ("name", "value", "bar", "", "nodes", "pods"):
        table.add_column(heading, justify="left" if heading in ("name", "") else "right", no_wrap=heading != "name")
    for row in rows:
        verdict = line(("met", "green") if _met(row) else ("missed", "red"))
        bar = f"{'≥' if row.higher_is_better else '≤'}{row.bar:,g}"
        value = f"{row.value:,.0f}" if row.value >= 100 else f"{row.value:,.1f}"
        table.add_row(row.name, f"{value} {row.unit}", bar, verdict, f"{row.nodes:,}", f"{row.pods:,}")
    return table


if __name__ == "__main__":
    main()
