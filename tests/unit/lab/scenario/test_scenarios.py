"""Scenarios: what is wrong is said with its line, and runs are the same bytes wherever they are played."""

from __future__ import annotations

import gzip
import multiprocessing
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from distributed import LocalCluster

from fairlead.cli.lab.command import lab_group
from fairlead.errors import ConfigError
from fairlead.lab import load
from fairlead.lab.play.experiment import Experiment
from fairlead.lab.play.run import RunKey, play
from fairlead.lab.results.tables import TABLES
from fairlead.lab.scenario.fleet import queue_object
from fairlead.lab.scenario.jobs import jobs_of
from fairlead.lab.scenario.queues import each_queue
from fairlead.lab.scenario.reading import check_scenario, read_scenario
from fairlead.lab.scenario.records import (
    ArrivalSpec,
    ClusterSpec,
    JobClassSpec,
    JobTraceSpec,
    LabScenario,
    LoadSpec,
    PolicySpec,
    QueueSpec,
    ShapeSpec,
    constant,
)

SCENARIO = """\
name: small
cluster:
  nodes: [{count: 3, resources: {cpu: 4, memory: 8Gi}}]
  queues: [{name: a}, {name: b, weight: 3}]
loads:
- name: mixed
  jobs:
  - name: single
    arrivals: {gap: {exponential: 5s}, count: 4}
    resources: {cpu: 1}
    duration: {uniform: [10s, 30s]}
    queues: [a, b]
  - name: gang
    arrivals: {gap: 20s, count: 2}
    pods: 4
    gang: true
    resources: {cpu: 2}
    duration: 30s
    queue: b
policies:
- name: kube
- {name: volcano, volcano: default}
measure: {every: 10s, fits: [{name: core, resources: {cpu: 1}}]}
seeds: [1]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    return file


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(directory)): one.read_bytes() for one in sorted(directory.rglob("*.*")) if one.is_file()
    }


def test_a_run_has_all_tables_with_their_columns(scenario: Path, tmp_path: Path) -> None:
    play(read_scenario(scenario), RunKey("kube", "mixed", 1), tmp_path / "run")
    results = load(tmp_path / "run")
    for name, columns in TABLES.items():
        assert list(getattr(results, name).columns) == ["policy", "load", "seed", *columns]
    assert len(results.jobs) == 10
    assert results.jobs["ended"].notna().all()
    assert set(results.pods["outcome"]) == {"succeeded"}
    gangs = results.jobs[results.jobs["class"] == "gang"]
    assert (gangs["ended"] - gangs["started"]).tolist() == [30.0, 30.0]
    busy = results.samples[results.samples["measure"] == "utilisation.cpu"]["value"]
    assert 0 < busy.max() <= 1
    first = results.samples[(results.samples["measure"] == "fits.core") & (results.samples["time"] == 0)]
    assert first["value"].iloc[0] == 12


def test_an_experiment_gives_the_same_bytes_on_one_core_on_two_interrupted_and_on_dask(
    scenario: Path, tmp_path: Path
) -> None:
    alone = Experiment(scenario, tmp_path / "alone")
    assert len(list(alone.play(workers=1))) == 2
    interrupted = Experiment(scenario, tmp_path / "two")
    runs = interrupted.play(workers=1)
    next(runs)
    runs.close()
    left = tmp_path / "two" / f".{interrupted.missing()[0].directory}.1"
    left.mkdir()
    assert len(list(Experiment(scenario, tmp_path / "two").play(workers=2))) == 1
    assert not left.exists()
    assert contents(tmp_path / "two") == contents(tmp_path / "alone")
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        assert len(list(Experiment(scenario, tmp_path / "dask").play(dask=cluster.scheduler_address))) == 2
    assert contents(tmp_path / "dask") == contents(tmp_path / "alone")


def test_an_experiment_that_is_interrupted_begins_no_further_run(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(SCENARIO.replace("seeds: [1]", f"seeds: {list(range(8))}"))
    experiment = Experiment(scenario, tmp_path / "out")
    runs = experiment.play(workers=2)
    next(runs)
    with pytest.raises(KeyboardInterrupt):
        runs.throw(KeyboardInterrupt())
    assert multiprocessing.active_children() == []  # nobody plays on
    assert len(experiment.keys) == 16
    assert len(experiment.missing()) >= 12  # two were done, and two more under way


def test_results_of_a_changed_scenario_are_not_mixed(scenario: Path, tmp_path: Path) -> None:
    next(Experiment(scenario, tmp_path / "out").play())
    scenario.write_text(SCENARIO.replace("30s", "40s"))
    with pytest.raises(ConfigError, match="another scenario"):
        Experiment(scenario, tmp_path / "out")


def test_results_of_a_changed_policy_file_are_not_mixed(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(SCENARIO.replace("volcano: default", "volcano: own.conf"))
    conf = scenario.parent / "own.conf"
    conf.write_text('actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}]}]\n')
    next(Experiment(scenario, tmp_path / "out").play())
    conf.write_text('actions: "allocate"\ntiers: [{plugins: [{name: gang}]}]\n')
    with pytest.raises(ConfigError, match="another scenario"):
        Experiment(scenario, tmp_path / "out")


KILLED_IN_ITS_SECOND_RUN = """
import os, signal, sys
from pathlib import Path
from fairlead.lab.play.experiment import Experiment
from fairlead.lab.results.writing import RunWriter

finish = RunWriter.finish

def finish_or_die(self, about):
    if list(Path(sys.argv[2]).glob("*/run.json")):
        os.kill(os.getpid(), signal.SIGKILL)
    finish(self, about)

RunWriter.finish = finish_or_die
list(Experiment(Path(sys.argv[1]), Path(sys.argv[2])).play())
"""


def test_an_experiment_that_is_killed_goes_on_and_gives_the_same_bytes(scenario: Path, tmp_path: Path) -> None:
    """What a killed process leaves of a run is no result, and the run is played again."""
    out = tmp_path / "killed"
    killed = subprocess.run([sys.executable, "-c", KILLED_IN_ITS_SECOND_RUN, scenario, out], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = out.glob(".*+*")
    assert (left / "jobs.parquet").is_file()
    assert len(load(out).runs) == len(Experiment(scenario, out).missing()) == 1
    list(Experiment(scenario, out).play())
    list(Experiment(scenario, tmp_path / "whole").play())
    assert contents(out) == contents(tmp_path / "whole")
    assert not left.exists()


def test_a_run_that_fails_leaves_nothing(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(SCENARIO.replace("name: kube", "name: kube\n  config: nowhere.yaml"))
    with pytest.raises(ConfigError, match=r"policy kube: .*nowhere\.yaml"):
        play(read_scenario(scenario), RunKey("kube", "mixed", 1), tmp_path / "out" / "run", base=tmp_path)
    assert list((tmp_path / "out").iterdir()) == []
    with pytest.raises(ConfigError, match="no complete run"):
        load(tmp_path / "out")


def test_a_truncated_table_is_refused_by_name(scenario: Path, tmp_path: Path) -> None:
    play(read_scenario(scenario), RunKey("kube", "mixed", 1), tmp_path / "run")
    table = tmp_path / "run" / "jobs.parquet"
    table.write_bytes(table.read_bytes()[:200])
    with pytest.raises(ConfigError, match=r"jobs\.parquet.*cannot be read"):
        load(tmp_path / "run")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("duration: 30s", "duration: soon", r"duration"),
        ("gang: true", "gangs: true", r'unknown field "gangs".*did you mean "gang"'),
        ("pods: 4", "pods: {normal: 4}", r"normal is no law"),
        ("{cpu: 2}", "{cpu: much}", r'"much" is not a quantity'),
        ("queue: b", "queue: c", r'no queue "c"'),
        ("{name: a}", "{name: a, count: -1}", r"is not a number of queues"),
        ("seeds: [1]", "seeds: 3", r"is not a list"),
        ("name: volcano,", "name: kube,", r'"kube" is given twice'),
        ("seeds: [1]", "seeds: [1, 2", r"yaml"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(scenario: Path, old: str, new: str, said: str) -> None:
    scenario.write_text(SCENARIO.replace(old, new))
    with pytest.raises(ConfigError) as error:
        read_scenario(scenario)
    line = scenario.read_text()[: scenario.read_text().index(new)].count("\n") + 1
    assert re.search(rf"scenario\.yaml:{line}: .*{said}", str(error.value)), str(error.value)


def test_a_trace_that_breaks_off_is_refused_with_its_line(tmp_path: Path) -> None:
    table = "arrival,duration,cpu,memory\n0,10,1,1Gi\n5,20,2,1Gi\n"
    file = tmp_path / "jobs.csv"
    file.write_text(table)
    spec = LoadSpec("csv", trace=JobTraceSpec(file=file))
    assert [(job.arrival, job.duration) for job in jobs_of(spec, 1)] == [(0.0, 10.0), (5.0, 20.0)]
    file.write_text(table[:-8])
    with pytest.raises(ConfigError, match=r"jobs\.csv:3.*breaks off"):
        jobs_of(spec, 1)
    file.write_text(table.replace("20,2", "long,2"))
    with pytest.raises(ConfigError, match=r'jobs\.csv:3.*"long" is neither'):
        jobs_of(spec, 1)
    packed = tmp_path / "jobs.csv.gz"
    packed.write_bytes(gzip.compress(table.encode())[:-12])
    with pytest.raises(ConfigError, match="is the file complete"):
        jobs_of(LoadSpec("csv", trace=JobTraceSpec(file=packed)), 1)


def test_a_scenario_made_in_python_is_checked_too() -> None:
    with pytest.raises(ConfigError, match="has no nodes"):
        check_scenario(LabScenario(loads=(LoadSpec(),)))
    with pytest.raises(ConfigError, match="neither jobs nor a trace"):
        check_scenario(LabScenario(cluster=ClusterSpec(nodes=(ShapeSpec(),)), loads=(LoadSpec(),)))


def test_a_queue_with_a_count_is_so_many_queues_and_jobs_name_them_together(tmp_path: Path) -> None:
    queues = (QueueSpec("top"), QueueSpec("q", count=3, parent="top", dequeue_strategy="fifo"), QueueSpec("one"))
    jobs = JobClassSpec("job", ArrivalSpec(gap=constant(1), count=2), duration=constant(5), queues=("q", "one"))
    scenario = LabScenario(
        cluster=ClusterSpec(nodes=(ShapeSpec(),), queues=queues),
        loads=(LoadSpec("load", (jobs,)),),
        policies=(PolicySpec("rounds", volcano="default"),),
    )
    check_scenario(scenario)
    play(scenario, RunKey("rounds", "load", 1), tmp_path / "run")
    results = load(tmp_path / "run")
    assert results.queues["queue"].tolist() == ["top", "q-0", "q-1", "q-2", "one"]
    assert sorted(results.jobs["queue"]) == ["one", "one", "q-0", "q-0", "q-1", "q-1", "q-2", "q-2"]
    (made,) = (queue_object(one) for one in each_queue(queues) if one.name == "q-2")
    assert (made["spec"]["parent"], made["spec"]["dequeueStrategy"]) == ("top", "fifo")


def test_the_commands_play_and_say_where_the_results_are(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    ran = CliRunner().invoke(lab_group, ["run", str(scenario), "--policy", "kube", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    assert "10 of 10 jobs ended, makespan" in ran.output
    assert (out / "jobs.parquet").is_file()
    assert '"startDelay"' in CliRunner().invoke(lab_group, ["schema"]).output
