"""Two jobs of four pods on six GPUs: without gangs each holds three and waits for ever, with gangs both end."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tools.docs.gang_table import DOCUMENT, SCENARIO, with_table

from fairlead import lab
from fairlead.cli.main import cli
from fairlead.lab.results.loading import LabResults


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> LabResults:
    directory = tmp_path_factory.mktemp("two-jobs") / "out"
    return lab.experiment(SCENARIO, directory=directory, workers=1)


def runs_of(played: LabResults, load: str) -> dict[str, dict[str, object]]:
    runs = played.runs[played.runs["load"] == load]
    return {one["policy"]: one for one in runs.to_dict("records")}


def test_without_gangs_each_job_holds_three_and_the_deadlock_is_named(played: LabResults) -> None:
    runs = runs_of(played, "alone")
    assert set(runs) == {"kube", "volcano", "koordinator"}
    for policy, about in runs.items():
        stuck = [{"job": f"job-{one}-0", "runs": 3, "needs": 4, "gpus": 3.0} for one in "ab"]
        assert about["deadlock"] == stuck, policy
        assert 6.0 <= float(str(about["waiting_gpu_hours"])) < 6.2
    assert played.jobs.loc[played.jobs["load"] == "alone", "ended"].isna().all()


def test_with_the_gangs_of_each_family_both_jobs_end(played: LabResults) -> None:
    for policy, about in runs_of(played, "gangs").items():
        assert isinstance(about["deadlock"], float), policy
        assert isinstance(about["waiting_gpu_hours"], float)
    ended = played.jobs.loc[played.jobs["load"] == "gangs", ["policy", "ended"]]
    assert ended.groupby("policy")["ended"].max().to_dict() == dict.fromkeys(("kube", "koordinator", "volcano"), 7203.0)


def test_the_table_of_the_page_has_the_figures_of_the_runs(played: LabResults) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert with_table(text, played) == text, "run `make docs`"


def test_the_report_and_the_commands_name_the_jobs_and_what_they_held(played: LabResults, tmp_path: Path) -> None:
    words = "job-a-0 (3 of the 4 pods that it needs run) and job-b-0 (3 of the 4 pods that it needs run)"
    page = played.report(tmp_path / "report").read_text(encoding="utf-8")
    assert f"<b>kube, alone, seed 1</b>: deadlock: {words} hold places and wait for each other." in page
    assert "gangs, seed 1</b>" not in page
    lost = played.metrics()
    lost = lost[lost["measure"] == "GPU hours lost to gangs that wait"]
    assert sorted(lost["value"] > 6) == [False] * 3 + [True] * 3
    said = CliRunner().invoke(cli, ["lab", "run", str(SCENARIO), "--load", "alone", "--out", str(tmp_path / "run")])
    assert f"deadlock: {words} hold places and wait for each other\n6.05 GPU hours were held" in said.output
