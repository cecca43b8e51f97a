"""Volcano's flags on `fairlead scheduler` and `fairlead up`, and the scheduler that they make."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.cli.main import cli
from fairlead.core.engine.scheduler import Scheduler
from fairlead.errors import ConfigError
from fairlead.testing.harness import Harness
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.records.quirks import ORIGINAL
from fairlead.volcano.rounds.settings import rounds_of
from tests.support.volcano_flags import flags


def assembly_of(*arguments: str) -> SchedulerAssembly:
    setup = flags(*arguments)
    return SchedulerAssembly(setups=[] if setup is None else [setup])


def scheduler(*arguments: str) -> Scheduler:
    return assembly_of(*arguments).scheduler(Harness().store)


def names(made: Scheduler) -> list[str]:
    return list(made.profiles)


def test_without_a_conf_there_is_nothing_of_volcano() -> None:
    assert flags() is None


@pytest.mark.parametrize("words", [["--volcano-only"], ["--volcano-compatible"], ["--default-queue", "x"]])
def test_the_others_need_a_conf(words: list[str]) -> None:
    with pytest.raises(click.UsageError, match=r"needs? --volcano-conf"):
        flags(*words)


def test_both_modes_are_served_by_one_scheduler() -> None:
    assert names(scheduler("--volcano-conf", "default")) == ["default-scheduler", "volcano"]


def test_only_leaves_the_kube_profile_out() -> None:
    assert names(scheduler("--volcano-conf", "default", "--volcano-only")) == ["volcano"]


def test_kube_batch_goes_by_its_own_name() -> None:
    assert names(scheduler("--volcano-conf", "kube-batch")) == ["default-scheduler", "kube-batch"]


def test_volcanos_flags_reach_the_rounds() -> None:
    made = scheduler(
        "--volcano-conf",
        "shipped",
        "--volcano-compatible",
        "--schedule-period",
        "250ms",
        "--default-queue",
        "main",
        "--scheduler-name",
        "a",
        "--scheduler-name",
        "b",
        "--percentage-nodes-to-find",
        "40",
        "--minimum-feasible-nodes",
        "7",
        "--minimum-percentage-nodes-to-find",
        "3",
    )
    rounds = rounds_of(made.profiles["a"])
    assert (rounds.period, rounds.default_queue, rounds.quirks) == (0.25, "main", ORIGINAL)
    assert (rounds.percentage, rounds.min_feasible, rounds.min_percentage) == (40, 7, 3)
    assert rounds.scheduler_names == ("a", "b")


def test_a_name_may_not_belong_to_both_modes() -> None:
    with pytest.raises(ConfigError, match="both a kube profile's and Volcano's"):
        scheduler("--volcano-conf", "default", "--scheduler-name", "default-scheduler")


def test_a_wrong_file_is_reported_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "v.conf"
    file.write_text("actions: alocate\ntiers: [{plugins: [{name: gang}]}]\n")
    result = _up("--volcano-conf", str(file))
    assert result.exit_code == 2
    assert 'there is no action "alocate" (did you mean "allocate"?)' in result.stderr


def test_a_changed_file_is_in_force_from_the_next_round_on(tmp_path: Path) -> None:
    file = tmp_path / "v.conf"
    file.write_text(PRESETS["default"])
    assembly, told = assembly_of("--volcano-conf", str(file)), list[str]()
    made = assembly.scheduler(Harness().store)
    (look,) = assembly.looks_of_setups(told.append)
    assert look() is None
    file.write_text(PRESETS["default"].replace("backfill", "backfil"))
    assert look() is None
    assert "stays in force" in told[-1]
    rounds = rounds_of(made.profiles["volcano"])
    assert rounds.actions == ("enqueue", "allocate", "backfill"), "the last good one stays"
    file.write_text(PRESETS["default"].replace("backfill", "backfill, allocate"))
    reload = look()
    assert reload is not None
    assert reload(made) == {"actions": "enqueue, allocate, backfill, allocate"}
    rounds = rounds_of(made.profiles["volcano"])
    assert rounds.actions == ("enqueue", "allocate", "backfill", "allocate")


def _up(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["up", *arguments])


def test_up_without_a_scheduler_has_no_use_for_a_conf() -> None:
    assert _up("--volcano-conf", "default", "--scheduler", "none").exit_code == 2


def test_controllers_alone_make_no_sense() -> None:
    assert CliRunner().invoke(cli, ["scheduler", "--volcano-controllers"]).exit_code == 2
