"""`fairlead lab omega`: several schedulers of a scenario's policy on one shared state."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.lab.command import lab_group
from fairlead.errors import ConfigError
from fairlead.lab.omega.setup import ThinkTime
from fairlead.lab.play.racing import RaceOptions, RaceOutcome, race
from fairlead.lab.scenario.documents import JOB_LABEL
from fairlead.lab.scenario.reading import read_scenario
from fairlead.lab.scenario.records import PolicySpec

ZONE = "topology.kubernetes.io/zone"
DEVICE = "example.com/device"
SCENARIO = """\
name: race
cluster:
  nodes: [{count: 6, resources: {cpu: 4, memory: 8Gi, example.com/device: 1}}]
  zones: 3
loads:
- jobs:
  - name: batch
    arrivals: {gap: 200ms, count: 24}
    pods: 2
    resources: {cpu: 1}
    duration: 5s
  - name: service
    arrivals: {gap: 2s, count: 3}
    pods: 3
    gang: true
    resources: {cpu: 2, memory: 1Gi, example.com/device: 1}
policies:
- name: packed
  config:
    profiles:
    - pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
- {name: rounds, volcano: default}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "race.yaml"
    path.write_text(SCENARIO)
    return path


def raced(file: Path, policy: str = "packed", **more: object) -> RaceOutcome:
    scenario = read_scenario(file)
    chosen: PolicySpec = next(one for one in scenario.policies if one.name == policy)
    options = RaceOptions(**{"until": 20.0, **more})  # type: ignore[arg-type]
    return race(scenario, chosen, scenario.loads[0], 1, options)


def seats(outcome: RaceOutcome, label: str) -> dict[str, list[str]]:
    """Of each job with a pod on a node at the end, the values of a label on those nodes."""
    found = defaultdict(list)
    for pod, row in outcome.cluster.seated():
        node = outcome.cluster.table.nodes[row]
        assert node is not None
        found[pod.labels.get(JOB_LABEL) or pod.name.rpartition("-")[0]].append(node.labels[label])
    return found


def test_a_class_has_schedulers_and_think_times_of_its_own(file: Path) -> None:
    alone, three = raced(file), raced(file, schedulers=3)
    assert alone.classes["batch"]["tx_retried"] == 0
    assert (three.classes["batch"]["conflict_fraction"] or 0) > 0
    assert (three.classes["batch"]["wait_first_mean"] or 0) < (alone.classes["batch"]["wait_first_mean"] or 0)
    slow = raced(file, think={"service": ThinkTime(4.0, 0.0)})
    assert (slow.classes["service"]["busy"] or 0) > 2 * (alone.classes["service"]["busy"] or 0)
    assert slow.classes["batch"]["wait_first_mean"] == alone.classes["batch"]["wait_first_mean"]


def test_gangs_of_the_scenario_are_whole_and_devices_are_not_given_twice(file: Path) -> None:
    """Nine pods of three gangs want a device each, and there are six."""
    outcome = raced(file, schedulers=3, until=60.0)
    gangs = {job: nodes for job, nodes in seats(outcome, "kubernetes.io/hostname").items() if "service" in job}
    assert sorted(map(len, gangs.values())) == [3, 3]
    assert len({node for nodes in gangs.values() for node in nodes}) == 6
    outcome.cluster.check()


def test_pods_of_a_job_that_are_to_be_apart_are(file: Path) -> None:
    found = seats(raced(file, schedulers=3, apart=ZONE), ZONE)
    assert found
    assert all(len(set(zones)) == len(zones) for zones in found.values())


def test_a_policy_in_rounds_cannot_race(file: Path) -> None:
    with pytest.raises(ConfigError, match="policy rounds works in rounds"):
        raced(file, policy="rounds")


def test_the_command_shows_conflicts_and_waits_by_class(file: Path) -> None:
    result = CliRunner().invoke(
        lab_group, ["omega", str(file), "--schedulers", "1,3", "--think", "service=4", "--until", "20"]
    )
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert [line[:3] for line in lines[1:]] == [
        ["1", "batch", "24"],
        ["1", "service", "3"],
        ["3", "batch", "24"],
        ["3", "service", "3"],
    ]
    assert float(lines[1][4]) < float(lines[3][4])


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--think", "batch=soon"), "'batch=soon' is no number of seconds"),
        (("--schedulers", "0,1"), "'0,1' is no list of numbers"),
        (("--policy", "other"), "has no policy of that name"),
    ],
)
def test_an_option_that_cannot_be_understood_is_named(file: Path, option: tuple[str, str], said: str) -> None:
    result = CliRunner().invoke(lab_group, ["omega", str(file), *option])
    assert result.exit_code == 2
    assert said in result.output


def test_the_example_can_be_played() -> None:
    example = Path(__file__).parents[4] / "examples" / "omega.yaml"
    result = CliRunner().invoke(
        lab_group, ["omega", str(example), "--schedulers", "2", "--apart", ZONE, "--until", "10"]
    )
    assert result.exit_code == 0, result.output
    assert [line.split()[:3] for line in result.output.splitlines()[1:]] == [
        ["2", "batch", "265"],
        ["2", "service", "18"],
    ]
