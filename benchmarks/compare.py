"""`make bench-compare BASE=COMMIT`: whether this commit costs more CPU time than another one, row by row.

Each commit runs its own rows in a git worktree of its own, in processes of their own, one at a time and in turn: a
machine that becomes slow makes both slow. What counts is CPU time of what a row measures (`compare_child`), and of some
pairs of runs the median ratio. A row that does other work in one commit than in the other (`row_text`) is named and not
measured.

Like `make bench` this fails nothing that is slow. What fails is a row that does not do its work.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from benchmarks.row_text import changes_between, text_of_row
from fairlead.console.terminal import output as standard_output
from fairlead.console.terminal import put_table

ROOT = Path(__file__).resolve().parents[1]
CHILD = Path(__file__).with_name("compare_child.py")
RESULTS = Path("build/bench-compare.json")
TREES = Path("build/bench-compare")
RUNS = 5
TOLERANCE = 0.03
QUIET = 0.5
"""The load of others, in processes, from which on CPU times say less: caches and physical cores are shared."""
PATIENCE = 900.0
"""Seconds after which a process is given up; the longest row takes ten."""
ROWS = (
    "api.creates.memory",
    "api.creates.memory.equal",
    "api.creates.journal",
    "api.creates.journal.batched",
    "api.creates.custom",
    "SchedulingBasic/5000Nodes",
    "PreemptionBasic/1000Nodes",
    "VolcanoGangs/500x20",
    "KoordinatorBasic/5000Nodes",
    "VirtualLife/1000Nodes",
)
"""The guard rows among those of `make bench`: each path that costs a user time, in a few seconds."""
_DATA = "tests/parity/data"
REPLAYS = {
    "replay.kube": (f"{_DATA}/kube/decisions.jsonl.gz", "--config", f"{_DATA}/kube/scheduler-config.yaml"),
    "replay.volcano": (f"{_DATA}/volcano/volcano.jsonl.gz",),
    "replay.koordinator": (f"{_DATA}/koordinator/decisions.jsonl.gz",),
}
"""Arguments of `fairlead replay`. Both commits replay the recordings of the working tree, hence the same work."""
_UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


class RowFailed(Exception):
    """A row did not do its work in one of the commits, and what its process said last."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two commits that are compared, and the directory that has its files."""

    name: str
    commit: str
    tree: Path


@dataclass(slots=True)
class Comparison:
    """What became of one row. `base` and `here` are CPU seconds of its single runs, those of one index made in turn;
    `whole` has those of whole processes, with start, imports and what the row sets up."""

    name: str
    of: str = ""
    base: list[float] = field(default_factory=list)
    here: list[float] = field(default_factory=list)
    whole: dict[str, list[float]] = field(default_factory=lambda: {"base": [], "here": []})
    changed: list[str] = field(default_factory=list)
    missing: str = ""
    failure: str = ""

    @property
    def ratio(self) -> float | None:
        """The median of what single pairs of runs cost, here to base. It is not the ratio of the two medians: the two
        runs of a pair are made within seconds, and the machine may be half as fast some minutes later."""
        return statistics.median(self.pairs) if self.is_measured else None

    @property
    def pairs(self) -> list[float]:
        """What each run here cost, to the run of the base before it: more than 1 costs more than it did."""
        return [here / base for base, here in zip(self.base, self.here, strict=False)]

    @property
    def spread(self) -> tuple[float, float] | None:
        """The least and the greatest ratio of a single pair of runs."""
        return (min(self.pairs), max(self.pairs)) if self.is_measured else None

    @property
    def is_measured(self) -> bool:
        return bool(self.base and self.here) and not self.failure

    @property
    def verdict(self) -> str:
        if self.failure:
            return f"failed: {self.failure}"
        if self.missing:
            return f"only {self.missing}"
        if self.changed:
            return f"changed: {', '.join(self.changed)}"
        assert self.ratio is not None
        if abs(self.ratio - 1) <= TOLERANCE:
            return f"within {TOLERANCE * 100:g} %"
        slower = sum(ratio > 1 for ratio in self.pairs)
        word, pairs = ("slower", slower) if self.ratio > 1 else ("faster", len(self.pairs) - slower)
        return word if pairs == len(self.pairs) else f"{word} in {pairs} of {len(self.pairs)}"

    def to_document(self) -> dict[str, Any]:
        medians = {
            f"{side}_cpu_seconds": statistics.median(runs) if self.is_measured else None
            for side, runs in (("base", self.base), ("here", self.here))
        }
        return {
            "name": self.name,
            "of": self.of,
            "verdict": self.verdict,
            "ratio": self.ratio,
            "spread": self.spread,
            **medians,
            "base_runs": self.base,
            "here_runs": self.here,
            "whole_process_runs": self.whole,
        }


@click.command("benchmarks.compare")
@click.option("--base", metavar="COMMIT", default="", help="The commit that is compared with this one.")
@click.option("--only", metavar="NAME", multiple=True, help="Only rows whose name contains this; may be repeated.")
@click.option("--runs", type=click.IntRange(min=1), default=RUNS, show_default=True, help="Runs per row and commit.")
@click.option("--list", "listing", is_flag=True, help="Name all rows and measure none.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def main(base: str, only: tuple[str, ...], runs: int, listing: bool, output: Path) -> None:
    """Measure the CPU time of this commit beside that of another one."""
    rows = chosen_rows(only)
    if listing:
        click.echo("\n".join(rows))
        return
    if not base:
        raise click.UsageError("no commit to compare with: make bench-compare BASE=COMMIT")
    commits = {"base": commit_of(ROOT, base), "here": commit_of(ROOT, "HEAD")}
    uncommitted = _git(ROOT, "status", "--porcelain").splitlines()
    if uncommitted:
        click.echo(f"here has what is not committed ({len(uncommitted)} files):", err=True)
        click.echo("\n".join(uncommitted[:10]), err=True)
    began, load = time.monotonic(), os.getloadavg()[0]
    try:
        with trees(ROOT, commits, in_place={"here": bool(uncommitted)}) as (one, other):
            compared = compare(rows, one, other, runs)
    except RowFailed as failure:
        raise click.ClickException(f"the rows cannot be listed {failure}") from failure
    load = max(load, os.getloadavg()[0] - 1)  # less the process that was measured
    document = {
        "commits": commits,
        "uncommitted": uncommitted,
        "runs": runs,
        "tolerance": TOLERANCE,
        "load": load,
        "rows": [row.to_document() for row in compared],
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(document, indent=2) + "\n")
    for name, commit in commits.items():
        click.echo(f"{name}: {_git(ROOT, 'show', '--no-patch', '--format=%h %s', commit)}")
    put_table(standard_output(), table_of(compared))
    click.echo(f"written to {output} after {time.monotonic() - began:.0f} s")
    if load > QUIET:
        click.echo(f"others used the machine (load {load:.1f}): the same code may differ by a quarter then", err=True)
    if failed := [row.name for row in compared if row.failure]:
        raise click.ClickException(f"{', '.join(failed)} did not do their work")


def chosen_rows(only: Sequence[str]) -> list[str]:
    """Those of the guard rows whose name contains one of these, or all."""
    rows = [*ROWS, *REPLAYS]
    for wanted in only:
        if not any(wanted.lower() in row.lower() for row in rows):
            raise click.UsageError(f"no guard row is called {wanted}; --list names them all")
    return [row for row in rows if not only or any(wanted.lower() in row.lower() for wanted in only)]


# ---- commits and their files ----


def commit_of(repository: Path, name: str) -> str:
    try:
        return _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except subprocess.CalledProcessError as error:
        raise click.ClickException(
            f"{name} is no commit of the repository {repository}; `git fetch` it if it is one elsewhere"
        ) from error


@contextmanager
def trees(repository: Path, commits: dict[str, str], in_place: dict[str, bool]) -> Iterator[list[Side]]:
    """A compiled worktree for each commit, removed afterwards. One that is in place is the repository's own."""
    sides: list[Side] = []
    made: list[Path] = []
    try:
        for name, commit in commits.items():
            tree = repository
            if not in_place.get(name):
                tree = repository / TREES / name
                _remove_tree(repository, tree)  # of a run that was killed
                made.append(tree)
                _git(repository, "worktree", "add", "--quiet", "--force", "--detach", str(tree), commit)
            # Otherwise the first run would compile, and the others not.
            subprocess.run([sys.executable, "-m", "compileall", "-q", "src", "benchmarks"], cwd=tree, check=True)
            sides.append(Side(name, commit, tree))
        yield sides
    finally:
        for tree in made:
            _remove_tree(repository, tree)


def _remove_tree(repository: Path, tree: Path) -> None:
    if tree.exists():
        command = ["git", "-C", str(repository), "worktree", "remove", "--force", str(tree)]
        subprocess.run(command, check=False, capture_output=True)
        shutil.rmtree(tree, ignore_errors=True)  # where git does not know it


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip()


# ---- measuring ----


def compare(rows: Sequence[str], base: Side, here: Side, runs: int) -> list[Comparison]:
    """Measure each of the rows that is the same in both commits, and say what became of each."""
    benches = {side.name: run_child(side, 0, "benches", *rows)[0] for side in (base, here)}
    compared = []
    for name in rows:
        row = Comparison(name)
        compared.append(row)
        if name not in REPLAYS:
            lacking = [side.name for side in (base, here) if name not in benches[side.name]]
            if lacking:
                row.missing = {"base": "here", "here": "in base"}.get("".join(lacking), "in the list of guard rows")
                continue
            texts = [text_of_row(side.tree, *benches[side.name][name]) for side in (base, here)]
            row.changed = changes_between(*texts)
        if not row.changed:
            _measure(row, base, here, runs)
        click.echo(f"{name}: {row.verdict}", err=True)
    return compared


def _measure(row: Comparison, base: Side, here: Side, runs: int) -> None:
    """Run the row in turn in both commits; the first failure ends it."""
    with tempfile.TemporaryDirectory() as directory:
        task: tuple[str, ...] = ("measure", row.name)
        if row.name in REPLAYS:
            recording, *arguments = (str(ROOT / a) if a.startswith(_DATA) else a for a in REPLAYS[row.name])
            task = ("replay", str(one_of_each(Path(recording), Path(directory))), recording, *arguments)
        try:
            for run in range(1, runs + 1):
                for side, seconds in ((base, row.base), (here, row.here)):
                    found, whole = run_child(side, run, *task)
                    row.of, cost = cost_of(found["value"], found["unit"])
                    seconds.append(cost)
                    row.whole[side.name].append(whole)
        except RowFailed as failure:
            row.failure = str(failure)


def run_child(side: Side, run: int, *task: str) -> tuple[Any, float]:
    """What a process answers that runs in the tree of a commit, and the CPU seconds of the whole process.

    Runs differ in the order of sets, and the two of one pair do not."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment |= {"PYTHONPATH": os.pathsep.join((str(side.tree / "src"), str(side.tree))), "PYTHONHASHSEED": str(run)}
    with tempfile.TemporaryDirectory() as directory:
        result = Path(directory, "result.json")
        # -P: the directory of the script, which is the working tree's `benchmarks`, stays off the path.
        command = [sys.executable, "-P", str(CHILD), str(result), *task]
        before = _cpu_of_children()
        try:
            ended = subprocess.run(
                command, cwd=side.tree, env=environment, capture_output=True, text=True, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired as error:
            raise RowFailed(f"in {side.name}: not done after {PATIENCE:.0f} s") from error
        if ended.returncode or not result.exists():
            said = ended.stderr.strip().splitlines() or ["nothing"]
            raise RowFailed(f"in {side.name}, exit code {ended.returncode}: {said[-1]}")
        return json.loads(result.read_text()), _cpu_of_children() - before


def _cpu_of_children() -> float:
    """Of those that have ended, so that a difference is that of the one between."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def one_of_each(recording: Path, directory: Path) -> Path:
    """A recording with the first scenario of each family only: replaying it imports what the whole one needs."""
    found: dict[str, str] = {}
    with gzip.open(recording, "rt", encoding="utf-8") as lines:
        for line in lines:
            found.setdefault(json.loads(line)["family"], line)
    few = directory / "few.jsonl"
    few.write_text("".join(found.values()), encoding="utf-8")
    return few


def cost_of(value: float, unit: str) -> tuple[str, float]:
    """What is paid for, and the seconds that it takes: of a rate, a thousand of what it counts."""
    if unit.endswith("/s"):
        return f"1,000 {unit.removesuffix('/s')}", 1000 / value
    if unit not in _UNITS:
        raise RowFailed(f"{value:g} {unit} is neither a time nor a rate")
    return "all", value * _UNITS[unit]


def table_of(compared: Sequence[Comparison]) -> Table:
    table = Table()
    for heading in ("row", "of", "base CPU s", "here CPU s", "here/base", "spread", "verdict"):
        number = heading in ("base CPU s", "here CPU s", "here/base", "spread")
        table.add_column(heading, justify="right" if number else "left", no_wrap=heading != "verdict")
    for row in compared:
        cells = ["", "", "", ""]
        if row.ratio is not None and row.spread is not None:
            cells = [f"{statistics.median(runs):.3f}" for runs in (row.base, row.here)]
            cells += [f"{row.ratio:.3f}", f"{row.spread[0]:.3f} to {row.spread[1]:.3f}"]
        table.add_row(row.name, row.of, *cells, row.verdict)
    return table


if __name__ == "__main__":
    main()
