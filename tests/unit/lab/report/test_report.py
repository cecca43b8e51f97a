"""The report: measures with intervals, paired differences, and one HTML file with a PNG and a CSV of each figure."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fairlead.lab import load
from fairlead.lab.play.run import RunKey, play
from fairlead.lab.report.drawing import bounds, ticks
from fairlead.lab.report.figures import _shown_nodes, figures_of
from fairlead.lab.report.metrics import metrics, paired, summary, unit_of
from fairlead.lab.report.page import _differences, _with_interval, write_report
from fairlead.lab.report.sentences import sentences
from fairlead.lab.scenario.records import (
    ArrivalSpec,
    ClusterSpec,
    JobClassSpec,
    LabScenario,
    LoadSpec,
    MeasureSpec,
    PolicySpec,
    QueueSpec,
    ShapeSpec,
    constant,
)


def scenario() -> LabScenario:
    jobs = JobClassSpec(
        "job", ArrivalSpec(gap=constant(0), count=4), resources={"cpu": "4"}, duration=constant(10), queue="a"
    )
    cluster = ClusterSpec(nodes=(ShapeSpec(2, resources={"cpu": "4"}),), queues=(QueueSpec("a"),))
    return LabScenario("tiny", cluster, (LoadSpec("four", (jobs,)),), measure=MeasureSpec(every=5))


def test_two_rounds_of_two_jobs_are_measured_and_drawn(tmp_path: Path) -> None:
    play(scenario(), RunKey("default", "four", 1), tmp_path / "runs" / "one")
    found = metrics(load(tmp_path / "runs")).set_index("measure")["value"]
    assert found["makespan"] > 19.9
    assert found["wait p50"] >= 0
    assert found["completion p99"] > 19.9
    assert found["goodput"] == 1
    assert found["fairness, Jain"] == 1
    page = write_report(load(tmp_path / "runs"), tmp_path / "report").read_text()
    assert page.count('role="img"') == 5
    assert "src=" not in page
    assert "prefers-color-scheme: dark" in page
    drawings = re.findall(r"<svg .*?</svg>", page, re.DOTALL)
    assert len(drawings) == 5
    assert not [colour for one in drawings for colour in re.findall(r": (#[0-9a-f]{6})", one)]
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", page)) <= set(identifiers)
    assert "Waits of jobs for their nodes, all seeds</text>" in drawings[3]
    for name in ("utilisation-cpu", "pending", "queues-default", "waits", "gantt-default"):
        assert (tmp_path / "report" / f"{name}.csv").stat().st_size > 20
        assert (tmp_path / "report" / f"{name}.png").stat().st_size > 5000
        assert "</svg>" in (tmp_path / "report" / f"{name}.svg").read_text()
        assert (tmp_path / "report" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    write_report(load(tmp_path / "runs"), tmp_path / "again")
    for file in (tmp_path / "report").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes(), file.name
    assert len((tmp_path / "report" / "gantt-default.csv").read_text().splitlines()) == 5


def test_intervals_are_students_and_differences_are_paired() -> None:
    rows = [("a", "l", seed, "m", value) for seed, value in enumerate((1.0, 2.0, 3.0))]
    rows += [("b", "l", seed, "m", value) for seed, value in enumerate((2.0, 3.0, 4.0))]
    measured = pd.DataFrame(rows, columns=["policy", "load", "seed", "measure", "value"])
    mean = summary(measured).set_index("policy")
    assert mean.loc["a", "mean"] == 2
    assert mean.loc["a", "interval"] == pytest.approx(4.303 / 3**0.5)
    difference = paired(measured, "a").iloc[0]
    assert (difference["policy"], difference["difference"], difference["interval"]) == ("b", 1, 0)


def test_ticks_are_round_numbers() -> None:
    assert ticks(0, 97) == [0, 20, 40, 60, 80]
    assert ticks(0, 0.95)[1] == pytest.approx(0.2)


def test_a_single_run_is_shown_without_an_interval() -> None:
    assert (_with_interval(1.5, float("inf")), _with_interval(1.5, 0.25)) == ("1.500", "1.500 ± 0.250")


def test_numbers_have_no_exponents_and_as_many_places_as_their_intervals() -> None:
    assert _with_interval(11_492.3, 13.4) == "11,492 ± 13"
    assert _with_interval(0.041731, 8.2e-5) == "0.04173 ± 0.00008"
    assert _with_interval(1.0, 2.5e-15) == "1.000 ± 0"
    assert _with_interval(0.0, 0.0) == "0 ± 0"


def test_differences_that_are_none_are_left_out_and_certain_ones_are_bold() -> None:
    rows = [("same", "b", 0.0, 0.0), ("certain", "b", 2.0, 0.5), ("unclear", "b", 0.25, 0.5)]
    frame = pd.DataFrame(
        [(measure, "l", policy, value, interval, 3) for measure, policy, value, interval in rows],
        columns=["measure", "load", "policy", "difference", "interval", "seeds"],
    )
    table = _differences(frame)
    assert "<td><b>2.000 ± 0.500</b></td>" in table
    assert "<td>0.2500 ± 0.5000</td>" in table
    assert "same" not in table


def test_an_axis_begins_at_zero_unless_all_values_are_far_from_it() -> None:
    assert bounds(0.1, 0.97) == (0.0, 1.0)
    assert bounds(0.106, 0.129) == (pytest.approx(0.105), pytest.approx(0.13))
    assert bounds(0.0, 0.0) == (0.0, 1.0)


def test_gantt_charts_of_all_policies_show_the_same_nodes_and_pods_beside_each_other(tmp_path: Path) -> None:
    small = replace(scenario().loads[0].jobs[0], resources={"cpu": "2"}, queue="")
    policies = (PolicySpec("kube"), PolicySpec("first", ties="first"))
    two = replace(scenario(), loads=(LoadSpec("four", (small,)),), policies=policies)
    for policy in policies:
        play(two, RunKey(policy.name, "four", 1), tmp_path / policy.name)
    figures = {one.name: one for one in figures_of(load(tmp_path))}
    assert figures["gantt-kube"].rows == figures["gantt-first"].rows == ["node-0", "node-1"]
    assert sorted((bar.row, bar.lane) for bar in figures["gantt-kube"].bars) == [
        ("node-0", 0),
        ("node-0", 1),
        ("node-1", 0),
        ("node-1", 1),
    ]
    assert not [name for name in figures if name.startswith("queues-")]


GPU = "nvidia.com/gpu"


def two_queues(requests: dict[str, str]) -> LabScenario:
    """On 8 GPUs, for 100 s: queue a holds 2 of them and queue b 6, and each deserves 4."""
    jobs = [
        JobClassSpec(name, ArrivalSpec(at=[0.0] * count), resources=requests, duration=constant(100), queue=name)
        for name, count in (("a", 2), ("b", 6))
    ]
    cluster = ClusterSpec((ShapeSpec(1, resources={"cpu": "64", GPU: "8"}),), queues=(QueueSpec("a"), QueueSpec("b")))
    return LabScenario("gpus", cluster, (LoadSpec("load", jobs),), measure=MeasureSpec(every=5))


@pytest.mark.parametrize("requests", [{GPU: "1"}, {GPU: "1", "cpu": "1"}])
def test_fairness_goes_by_the_dominant_resource(requests: dict[str, str], tmp_path: Path) -> None:
    play(two_queues(requests), RunKey("default", "load", 1), tmp_path / "run")
    found = metrics(load(tmp_path / "run")).set_index("measure")["value"]
    assert found["share of deserved, least"] == pytest.approx(0.5, abs=0.06)
    assert found["fairness, Jain"] == pytest.approx(8**2 / (2 * (2**2 + 6**2)), abs=0.01)
    assert found["finish-time fairness, worst"] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("queues", "users", "jain"), [(("a", "b"), (), 0.8), ((), ("u", "v"), 0.8), ((), (), 1.0)])
def test_jains_index_is_there_without_queues_of_the_cluster(
    queues: tuple[str, ...], users: tuple[str, ...], jain: float, tmp_path: Path
) -> None:
    """Jobs name queues, or users, of which one holds three times as much as the other."""
    given = two_queues({GPU: "1"})
    jobs = [
        replace(one, queue=queue, users=(user,) if user else ())
        for one, queue, user in zip(given.loads[0].jobs, queues or ("", ""), users or ("", ""), strict=True)
    ]
    alone = replace(given, cluster=replace(given.cluster, queues=()), loads=(LoadSpec("load", jobs),))
    play(alone, RunKey("default", "load", 1), tmp_path / "run")
    found = metrics(load(tmp_path / "run")).set_index("measure")["value"]
    assert found["fairness, Jain"] == pytest.approx(jain, abs=0.01)


def test_queues_are_drawn_by_the_resource_that_is_used_most(tmp_path: Path) -> None:
    play(two_queues({GPU: "1"}), RunKey("default", "load", 1), tmp_path / "run")
    (figure,) = (one for one in figures_of(load(tmp_path / "run")) if one.name == "queues-default")
    assert figure.y_label == "GPUs"
    assert {line.label: max(line.y) for line in figure.lines} == {"a": 2, "b": 6}


def test_bands_of_shares_stay_between_nothing_and_all(tmp_path: Path) -> None:
    """Two seeds of which one uses everything and the other nothing have an interval of 12.7 times the share."""
    given = two_queues({GPU: "1"})
    for seed in (1, 2):
        one = given if seed == 1 else replace(given, loads=(replace(given.loads[0], jobs=given.loads[0].jobs[:1]),))
        play(one, RunKey("default", "load", seed), tmp_path / str(seed))
    figures = {one.name: one for one in figures_of(load(tmp_path))}
    (line,) = figures["utilisation-gpu"].lines
    assert min(line.low) >= 0
    assert max(line.high) == 1


def measured(**values: tuple[float, ...]) -> pd.DataFrame:
    rows = [
        (policy, "load", seed, measure.replace("_", " "), value)
        for name, each in values.items()
        for policy, _, measure in [name.partition("__")]
        for seed, value in enumerate(each)
    ]
    return pd.DataFrame(rows, columns=["policy", "load", "seed", "measure", "value"])


def test_a_sentence_says_what_is_better_and_by_how_much() -> None:
    frame = measured(
        kube__wait_p50=(100.0, 110.0, 120.0), fifo__wait_p50=(150.0, 160.0, 171.0),
        kube__makespan=(1000.0, 1010.0, 1020.0), fifo__makespan=(900.0, 911.0, 920.0),
        kube__jobs_not_placed=(0.0, 0.0, 0.0), fifo__jobs_not_placed=(0.0, 0.0, 0.0),
    )  # fmt: skip
    assert sentences(frame, "kube") == [
        (
            "kube",
            "the others are compared with it; jobs that were not placed 0, the median wait 110 s, "
            "the makespan 1,010 s.",
        ),
        (
            "fifo",
            "against kube better in the makespan (99.7 s less, 10%); worse in the median wait (50.3 s more, 46%); "
            "no certain difference in jobs that were not placed.",
        ),
    ]


def test_a_sentence_about_one_seed_says_so() -> None:
    frame = measured(kube__makespan=(1000.0,), fifo__makespan=(900.0,))
    assert sentences(frame, "kube")[1][1].endswith(
        "better in the makespan (100 s less, 10%) (one seed, so there is no interval)."
    )


def test_every_measure_of_a_report_has_its_unit(tmp_path: Path) -> None:
    play(scenario(), RunKey("default", "four", 1), tmp_path / "run")
    results = load(tmp_path / "run")
    assert not [name for name in metrics(results)["measure"] if not unit_of(name)]
    page = results.report(tmp_path / "report").read_text()
    assert "<tr><td>makespan</td><td>s</td>" in page
    assert page.index("the makespan 20 s") < page.index("<table>")
    assert "1 run: 1 policy" in page
    assert repr(results) == "<LabResults: 1 run, 4 of 4 jobs ended>"
    assert "<table>" in results._repr_html_()


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    pods = pd.DataFrame([("kube", f"node-{at}") for at in (10, 9, 2, 11)], columns=["policy", "node"])
    assert _shown_nodes(pods) == ["node-2", "node-9", "node-10", "node-11"]


def test_times_are_not_compared_where_not_the_same_jobs_were_placed() -> None:
    frame = measured(
        kube__makespan=(62.0, 62.0), fifo__makespan=(60.0, 60.0),
        kube__jobs_not_placed=(1.0, 1.0), fifo__jobs_not_placed=(2.0, 2.0),
    )  # fmt: skip
    assert sentences(frame, "kube")[1][1] == (
        "against kube worse in jobs that were not placed (1 more, 100%); "
        "waits and the makespan are of other jobs, and not compared."
    )
