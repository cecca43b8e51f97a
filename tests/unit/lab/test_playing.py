"""`lab.run` and `lab.experiment`: scenarios from Python, with the results as DataFrames."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fairlead import ConfigError, lab
from fairlead.lab.scenario.records import (
    ArrivalSpec,
    ClusterSpec,
    JobClassSpec,
    LabScenario,
    LoadSpec,
    PolicySpec,
    ShapeSpec,
    constant,
)

SCENARIO = """\
name: tiny
cluster: {nodes: [{count: 1, resources: {cpu: 2}}]}
loads:
- {name: first, jobs: [{arrivals: {gap: 5s, count: 3}, resources: {cpu: 1}, duration: 10s}]}
- {name: second, jobs: [{arrivals: {gap: 5s, count: 4}, resources: {cpu: 1}, duration: 10s}]}
policies: [{name: kube}, {policy: fifo}]
seeds: [7, 8]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    return file


def test_a_run_is_the_first_of_its_scenario_unless_it_is_named(file: Path, tmp_path: Path) -> None:
    first = lab.run(file)
    assert (len(first.runs), len(first.jobs)) == (1, 3)
    assert first.runs.iloc[0][["policy", "load", "seed"]].tolist() == ["kube", "first", 7]
    named = lab.run(str(file), policy="fifo", load="second", seed=9, directory=tmp_path / "kept")
    assert named.runs.iloc[0][["policy", "load", "seed"]].tolist() == ["fifo", "second", 9]
    assert lab.load(tmp_path / "kept").jobs.equals(named.jobs)
    with pytest.raises(ConfigError, match='no policy "fife"'):
        lab.run(file, policy="fife")


def test_an_experiment_has_all_runs_in_the_order_of_its_scenario(file: Path, tmp_path: Path) -> None:
    results = lab.experiment(file, directory=tmp_path / "out")
    assert len(results.runs) == 8
    assert list(dict.fromkeys(results.runs["policy"])) == ["kube", "fifo"]
    assert results.missing == ()
    assert set(results.summary()["seeds"]) == {2}
    (tmp_path / "out" / "kube+first+7" / "run.json").unlink()
    assert lab.load(tmp_path / "out").missing == ("kube+first+7",)
    assert repr(lab.load(tmp_path / "out")).startswith("<LabResults: 7 runs, 1 missing, ")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_scenario_made_in_python_is_played_too(workers: int) -> None:
    jobs = JobClassSpec("job", ArrivalSpec(gap=constant(5), count=3), resources={"cpu": "1"}, duration=constant(10))
    made = LabScenario(
        "made",
        ClusterSpec((ShapeSpec(resources={"cpu": "2"}),)),
        (LoadSpec("load", (jobs,)),),
        (PolicySpec(), PolicySpec(policy="sjf")),
    )
    results = lab.experiment(made, workers=workers)
    assert results.runs["policy"].tolist() == ["default", "sjf"]
    assert results.jobs["ended"].notna().all()
    assert len(lab.run(made, policy="sjf").jobs) == 3


def test_without_the_extra_it_is_said_what_to_install(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    for call in (lab.run, lab.experiment, lab.load):
        with pytest.raises(ConfigError, match=r"pandas, which is not installed \(pip install 'fairlead\[lab\]'\)"):
            call(file)
