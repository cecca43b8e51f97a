"""`make bench-compare`: which rows are the same in two commits, what their runs say, and whole comparisons of rows that
take no time. How long something takes is asserted nowhere."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from textwrap import dedent

import click
import pytest
from benchmarks import compare
from benchmarks.compare import Comparison, RowFailed, chosen_rows, commit_of, cost_of, main
from benchmarks.row_text import changes_between, text_of_row
from click.testing import CliRunner

ROWS_MODULE = '''
    """Rows."""
    from typing import TYPE_CHECKING

    from benchmarks import helpers
    from benchmarks.helpers import made
    from fairlead.engine.scheduler import Scheduler
    from fairlead.model import kinds

    if TYPE_CHECKING:
        from fairlead.state.cluster import Cluster

    COUNT = 10
    """How many."""


    def bench_some():
        """Some rows."""
        from fairlead.config.loading import read_config

        scheduler = Scheduler(read_config("kube"))
        return helpers.run(made(scheduler, kinds.POD, COUNT), "fairlead.engine.scheduler:Scheduler")


    def bench_others():
        return 1
'''
HELPERS_MODULE = """
    import fairlead.state.cluster

    LIMIT = 5


    def made(scheduler, kind, count):
        return [fairlead.state.cluster.Cluster(scheduler, kind) for _ in range(count)]


    def run(clusters, name):
        return clusters[:LIMIT], name


    def unused():
        return 0
"""


def changed(directory: Path, old: str = "", new: str = "", *, helpers: tuple[str, str] = ("", "")) -> list[str]:
    """What a replacement in the two modules changes of `bench_some`."""
    texts = []
    for name, rows, others in (
        ("base", ROWS_MODULE, HELPERS_MODULE),
        ("here", ROWS_MODULE.replace(old, new), HELPERS_MODULE.replace(*helpers)),
    ):
        package = directory / name / "benchmarks"
        package.mkdir(parents=True)
        (package / "rows.py").write_text(dedent(rows))
        (package / "helpers.py").write_text(dedent(others))
        texts.append(text_of_row(directory / name, "benchmarks.rows", "bench_some"))
    return changes_between(*texts)


def test_a_row_whose_modules_moved_is_the_same(tmp_path: Path) -> None:
    assert changed(tmp_path, "fairlead.", "fairlead.core.", helpers=("fairlead.state", "fairlead.core.state")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from fairlead.model import kinds\n", "from fairlead.model import kinds, flow\n    import time\n"),
        ('"""Some rows."""', '"""Rows, in other words."""  # and a comment'),
        ('"""How many."""', ""),
        ("return 1", "return 2"),
        ("    if TYPE_CHECKING:\n        from fairlead.state.cluster import Cluster\n", ""),
    ],
)
def test_imports_and_docstrings_and_other_rows_change_no_row(tmp_path: Path, old: str, new: str) -> None:
    assert old in ROWS_MODULE
    assert changed(tmp_path, old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("COUNT = 10", "COUNT = 11", ["COUNT"]),
        ('read_config("kube")', 'read_config("volcano")', ["bench_some"]),
        (":Scheduler", ":Other", ["bench_some"]),
        ("kinds.POD", "kinds.NODE", ["bench_some"]),
    ],
)
def test_a_row_that_does_other_work_is_changed(tmp_path: Path, old: str, new: str, names: list[str]) -> None:
    assert old in ROWS_MODULE
    assert changed(tmp_path, old, new) == names


def test_helpers_of_other_modules_belong_to_a_row_that_uses_them(tmp_path: Path) -> None:
    assert changed(tmp_path / "a", helpers=("LIMIT = 5", "LIMIT = 6")) == ["LIMIT"]
    assert changed(tmp_path / "b", helpers=("range(count)", "range(count + 1)")) == ["made"]
    assert changed(tmp_path / "c", helpers=("return 0", "return 1")) == []


def test_a_row_whose_function_is_not_found_is_an_error(tmp_path: Path) -> None:
    changed(tmp_path)
    with pytest.raises(LookupError, match=r"benchmarks\.rows defines no bench_none"):
        text_of_row(tmp_path / "base", "benchmarks.rows", "bench_none")


def test_every_guard_row_is_a_row_of_make_bench() -> None:
    from benchmarks.__main__ import BENCHES

    known = {name: bench for names, bench in BENCHES for name in names}
    for row in compare.ROWS:
        text = text_of_row(compare.ROOT, known[row].__module__, known[row].__qualname__)
        assert {known[row].__qualname__, "Row"} <= text.keys()


def test_the_recordings_that_are_replayed_are_there() -> None:
    files = [word for words in compare.REPLAYS.values() for word in words if not word.startswith("--")]
    assert [file for file in files if not (compare.ROOT / file).is_file()] == []


def test_imports_of_a_replay_are_made_by_a_scenario_of_each_family(tmp_path: Path) -> None:
    few = compare.one_of_each(compare.ROOT / compare.REPLAYS["replay.koordinator"][0], tmp_path)
    families = [json.loads(line)["family"] for line in few.read_text().splitlines()]
    assert len(families) == len(set(families)) > 3


def measured(*pairs: tuple[float, float]) -> Comparison:
    return Comparison("row", base=[base for base, _ in pairs], here=[here for _, here in pairs])


def test_the_ratio_is_the_median_of_the_pairs_though_the_machine_became_slow() -> None:
    row = measured((1.0, 1.0), (1.0, 1.1), (4.0, 4.2), (4.0, 4.0), (4.0, 5.0))
    assert row.ratio == pytest.approx(1.05)
    assert row.spread == pytest.approx((1.0, 1.25))


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([(1.0, 1.029)], "within 3 %"),
        ([(1.0, 0.98)], "within 3 %"),
        ([(1.0, 1.04)] * 5, "slower"),
        ([(1.0, 0.9)] * 5, "faster"),
        ([(1.0, 1.2)] * 4 + [(1.0, 0.9)], "slower in 4 of 5"),
        ([(1.0, 0.8)] * 3 + [(1.0, 1.1)] * 2, "faster in 3 of 5"),
    ],
)
def test_verdicts(pairs: list[tuple[float, float]], verdict: str) -> None:
    assert measured(*pairs).verdict == verdict


def test_a_row_that_was_not_measured_has_no_numbers() -> None:
    row = Comparison("row", changed=["COUNT"])
    assert (row.verdict, row.ratio, row.to_document()["base_cpu_seconds"]) == ("changed: COUNT", None, None)


def test_rates_cost_the_seconds_of_a_thousand() -> None:
    assert cost_of(4000, "pods/s") == ("1,000 pods", 0.25)
    assert cost_of(2, "s") == ("all", 2)
    assert cost_of(50, "µs") == ("all", pytest.approx(50e-6))
    with pytest.raises(RowFailed, match="5 MB is neither a time nor a rate"):
        cost_of(5, "MB")


def test_rows_are_chosen_by_a_part_of_their_name() -> None:
    assert chosen_rows(["koord"]) == ["KoordinatorBasic/5000Nodes", "replay.koordinator"]
    assert chosen_rows(["replay.kube", "custom"]) == ["api.creates.custom", "replay.kube"]
    with pytest.raises(click.UsageError, match="no guard row is called nonsense; --list names them all"):
        chosen_rows(["api", "nonsense"])


def test_the_list_needs_no_base() -> None:
    result = CliRunner().invoke(main, ["--list", "--only", "replay"])
    assert result.output.split() == ["replay.kube", "replay.volcano", "replay.koordinator"]


def test_without_a_base_the_command_says_how_to_name_one() -> None:
    result = CliRunner().invoke(main, ["--base", ""])
    assert result.exit_code == 2
    assert "make bench-compare BASE=COMMIT" in result.output


# ---- a whole comparison, of a repository with rows that take no time ----

REGISTRY = '''
    from dataclasses import dataclass

    import fairlead


    @dataclass
    class Row:
        name: str
        value: float
        unit: str = "pods/s"


    def collect_rarely(): ...


    def bench_creates():
        """More than one row; the second is never reached."""
        print("what a row prints is no answer")
        yield Row("api.creates.memory", fairlead.RATE)
        raise AssertionError("not wanted")


    def bench_custom():
        yield Row("api.creates.custom", 50)


    def bench_broken():
        raise AssertionError("12 pods were not placed")


    BENCHES = [
        (("api.creates.memory", "other"), bench_creates),
        (("api.creates.custom",), bench_custom),
        (("SchedulingBasic/5000Nodes",), bench_broken),
    ]
'''


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, in which commands run."""
    root = tmp_path / "repository"
    for file, text in {
        "src/fairlead/__init__.py": "RATE = 100",
        "benchmarks/__init__.py": "",
        "benchmarks/__main__.py": dedent(REGISTRY),
        ".gitignore": "build/\n__pycache__/\n",
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    git(root, "init", "--quiet")
    commit(root)
    monkeypatch.setattr(compare, "ROOT", root)
    monkeypatch.chdir(root)
    return root


def git(root: Path, *arguments: str) -> str:
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", root, *who, *arguments], check=True, capture_output=True, text=True).stdout


def commit(root: Path) -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Change something")
    return git(root, "rev-parse", "HEAD").strip()


def edit(root: Path, old: str, new: str) -> None:
    file = root / "benchmarks/__main__.py"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def compared(root: Path, *arguments: str, exit_code: int = 0) -> tuple[str, dict[str, dict[str, object]]]:
    """What was said, and the rows of the file that was written."""
    result = CliRunner().invoke(main, ["--runs", "2", *arguments])
    assert result.exit_code == exit_code, result.output
    return result.output, {row["name"]: row for row in json.loads((root / compare.RESULTS).read_text())["rows"]}


def test_two_commits_are_measured_in_turn_each_with_its_own_files(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD").strip()
    (repository / "src/fairlead/__init__.py").write_text("RATE = 50")
    edit(repository, '"api.creates.custom", 50', '"api.creates.custom", 40')
    commit(repository)
    output, rows = compared(repository, "--base", base, "--only", "api.creates.memory", "--only", "custom")
    assert rows["api.creates.memory"]["base_runs"] == [10.0, 10.0]
    assert rows["api.creates.memory"]["here_runs"] == [20.0, 20.0]
    assert rows["api.creates.memory"]["verdict"] == "slower"
    assert rows["api.creates.custom"]["verdict"] == "changed: bench_custom"
    assert rows["api.creates.memory.equal"]["verdict"] == "only in the list of guard rows"
    assert "is not committed" not in output


def test_a_tree_is_never_measured_with_the_package_of_another(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD").strip()
    git(repository, "rm", "-r", "--quiet", "src")
    (repository / "src").mkdir()
    (repository / "src/other.py").write_text("")
    commit(repository)
    result = CliRunner().invoke(main, ["--base", base])
    assert result.exit_code == 1
    assert "the rows cannot be listed in here" in result.output
    assert "would be measured instead of the tree" in result.output


def test_no_worktree_stays(repository: Path) -> None:
    compared(repository, "--base", "HEAD", "--only", "custom")
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert list((repository / compare.TREES).iterdir()) == []


def test_a_worktree_of_a_run_that_was_killed_is_made_anew(repository: Path) -> None:
    left = repository / compare.TREES / "base"
    git(repository, "worktree", "add", "--detach", str(left))
    (left / "benchmarks/__main__.py").write_text("raise AssertionError")
    compared(repository, "--base", "HEAD", "--only", "custom")


def test_what_is_not_committed_is_measured_and_said(repository: Path) -> None:
    edit(repository, 'Row("api.creates.custom", 50)', 'Row("api.creates.custom", 40)')
    output, rows = compared(repository, "--base", "HEAD", "--only", "custom")
    assert "here has what is not committed (1 files)" in output
    assert " M benchmarks/__main__.py" in output
    assert rows["api.creates.custom"]["verdict"] == "changed: bench_custom"


def test_a_row_that_exists_in_one_commit_only_is_named(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD").strip()
    edit(repository, "api.creates.custom", "api.creates.journal")
    commit(repository)
    _, rows = compared(repository, "--base", base, "--only", "api.creates.custom", "--only", "journal")
    assert rows["api.creates.custom"]["verdict"] == "only in base"
    assert rows["api.creates.journal"]["verdict"] == "only here"


def test_a_row_that_fails_is_an_error_and_the_others_are_measured(repository: Path) -> None:
    output, rows = compared(repository, "--base", "HEAD", "--only", "Sched", "--only", "custom", exit_code=1)
    assert "12 pods were not placed" in str(rows["SchedulingBasic/5000Nodes"]["verdict"])
    assert "Error: SchedulingBasic/5000Nodes did not do their work" in output
    assert rows["api.creates.custom"]["verdict"] == "within 3 %"


def test_an_unknown_commit_is_an_error(repository: Path) -> None:
    with pytest.raises(click.ClickException, match="nowhere is no commit of the repository"):
        commit_of(repository, "nowhere")
