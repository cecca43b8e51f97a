"""The traps that `fairlead config check` knows: each with a file that is caught, and some with one that is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fairlead.cli.config_commands import config_group
from fairlead.cluster.store.snapshot import RedactionOptions, write_snapshot
from fairlead.core.model.flow import Doc
from fairlead.core.model.group import compile_group
from fairlead.testing.builders import node, podgroup, queue
from fairlead.testing.harness import Harness
from fairlead.volcano.config.group_traps import traps_of_groups
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.config.queue_traps import traps_of_queues
from fairlead.volcano.config.reading import load_volcano_config
from fairlead.volcano.config.traps import traps_of
from fairlead.volcano.config.waiting_queues import traps_of_waiting_queues
from fairlead.volcano.records.queues import Queue, compile_queue


def conf(actions: str, *tiers: str, more: str = "") -> str:
    """Plugins are separated by blanks; `name{yaml}` has switches or arguments in flow style."""
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines.append("- plugins:")
        for plugin in tier.split(";"):
            name, _, body = plugin.strip().partition(" ")
            lines.append(f"  - {{name: {name}{', ' + body if body else ''}}}")
    return "\n".join(lines) + "\n" + more


BASICS = "priority; gang; conformance; pdb"
CALM = conf("enqueue, allocate, backfill", BASICS, "overcommit; drf; predicates; proportion; nodeorder")


def told(text: str) -> list[str]:
    return [trap.what for trap in traps_of(load_volcano_config(text))]


TWO_GANGS = [podgroup(name, 8).in_queue(name).having(minResources={"cpu": "8"}).doc() for name in "ab"]


def test_gangs_that_need_more_than_proportion_gives_wait_for_each_other_in_compatible_mode() -> None:
    queues = [compile_queue({"metadata": {"name": name}, "spec": {"weight": 1}}) for name in "ab"]
    groups, room = [compile_group(one) for one in TWO_GANGS], {"cpu": 8000, "memory": 10**9}
    text = PRESETS["default"]
    found = traps_of_waiting_queues(load_volcano_config(text, compatible=True), groups, queues, room)
    assert [trap.what for trap in found] == [
        f"it needs 8 cpu, of which its queue {own} deserves 4, and podgroup default/{other} of queue {other} waits too"
        for own, other in ("ab", "ba")
    ]
    for config, there in (
        (load_volcano_config(text), room),
        (load_volcano_config(PRESETS["kube-batch"], compatible=True), room),
        (load_volcano_config(text, compatible=True), {"cpu": 16000, "memory": 10**9}),
        (load_volcano_config(text, compatible=True), {"cpu": 7000, "memory": 10**9}),
    ):
        assert traps_of_waiting_queues(config, groups, queues, there) == []


def test_a_sound_file_has_no_traps() -> None:
    assert told(CALM) == []
    assert traps_of(load_volcano_config(PRESETS["default"])) == []


CASES = [
    (
        "preempt will not start for groups that do not fit into a full cluster",
        conf("enqueue, allocate, backfill, preempt", BASICS, "overcommit; predicates; proportion"),
    ),
    (
        "preempt may take single pods out of running gangs and leave the rest below their minimum",
        conf(
            "allocate, backfill, preempt",
            "priority; gang enablePreemptable: false; pdb",
            "predicates; proportion",
        ),
    ),
    (
        "reclaim may take single pods out of running gangs and leave the rest below their minimum",
        conf("allocate, backfill, reclaim", "priority; gang enableReclaimable: false; pdb", "predicates; proportion"),
    ),
    (
        "proportion and capacity both rule the queues, and the stricter of the two decides every time",
        conf("allocate, backfill", BASICS, "predicates; proportion; capacity"),
    ),
    (
        "binpack and nodeorder pull in opposite directions and nearly cancel out",
        conf("allocate, backfill", BASICS, "predicates; proportion; nodeorder; binpack"),
    ),
    (
        "pods may be placed on nodes that they must not run on",
        conf("allocate, backfill", BASICS, "proportion"),
    ),
    (
        "groups are not placed as wholes: each pod starts as soon as it fits",
        conf("allocate, backfill", "priority", "predicates; proportion"),
    ),
    (
        "an overcommit-factor of 0.8 counts as 1.2",
        conf(
            "enqueue, allocate, backfill",
            BASICS,
            "overcommit arguments: {overcommit-factor: 0.8}; predicates; proportion",
        ),
    ),
    ("overcommit has no effect", conf("allocate, backfill", BASICS, "overcommit; predicates; proportion")),
    ("tdm will not move anything", conf("allocate, backfill", BASICS, "tdm; predicates; proportion")),
    (
        "usage knows no utilisation and does nothing",
        conf("allocate, backfill", BASICS, "usage; predicates; proportion"),
    ),
    (
        "sla does not get waiting groups in",
        conf("enqueue, allocate, backfill", BASICS, "sla; overcommit; predicates; proportion"),
    ),
    (
        "preempt may evict pods of equal or higher priority",
        conf("allocate, backfill, preempt", BASICS, "drf; predicates; proportion"),
    ),
    (
        "reclaim may break gangs all the same",
        conf("allocate, backfill, reclaim", BASICS, "predicates; proportion"),
    ),
    (
        "PodDisruptionBudgets are not looked at when pods are evicted",
        conf("allocate, backfill, reclaim", "priority; gang", "predicates; proportion"),
    ),
    (
        "reclaim does not know whom to spare",
        conf("allocate, backfill, reclaim", BASICS, "predicates; proportion enableReclaimable: false"),
    ),
    (
        "preempt runs before allocate and evicts for pods that might have fitted",
        conf("preempt, allocate, backfill", BASICS, "predicates; proportion"),
    ),
    ("queues have no limits and no fair share", conf("allocate, backfill", BASICS, "predicates")),
    ("pods that ask for no resources are never placed", conf("allocate", BASICS, "predicates; proportion")),
    ("no pod is ever placed that asks for anything", conf("backfill", BASICS, "predicates; proportion")),
    (
        "gang is listed twice, and both times it answers with the arguments given here",
        conf("allocate, backfill", BASICS, "gang; predicates; proportion"),
    ),
    ("devices are never handed out", conf("allocate, backfill", BASICS, "deviceshare; proportion")),
    (
        "preempt makes no room for groups with a network topology",
        conf("allocate, backfill, preempt", BASICS, "network-topology-aware; predicates; proportion"),
    ),
    ("extender asks nobody", conf("allocate, backfill", BASICS, "extender; predicates; proportion")),
]


@pytest.mark.parametrize(("what", "text"), CASES, ids=[what[:40] for what, _ in CASES])
def test_a_trap_is_reported_with_its_reason_and_a_way_out(what: str, text: str) -> None:
    (trap,) = [trap for trap in traps_of(load_volcano_config(text)) if trap.what == what]
    assert trap.why
    assert trap.fix


def test_sla_above_the_others_opens_the_way_for_preempt() -> None:
    text = conf("enqueue, allocate, backfill, preempt", f"sla; {BASICS}", "overcommit; predicates; proportion")
    assert not any("full cluster" in what for what in told(text))


def test_binpack_that_is_strong_enough_is_no_trap() -> None:
    strong = conf(
        "allocate, backfill", BASICS, "predicates; proportion; nodeorder; binpack arguments: {binpack.weight: 10}"
    )
    alone = conf(
        "allocate, backfill",
        BASICS,
        "predicates; proportion; nodeorder arguments: {leastrequested.weight: 0}; binpack",
    )
    assert told(strong) == told(alone) == []


@pytest.mark.parametrize("source", ["type: prometheus, address: 'http://p:9090'", "type: prometheus_adaptor"])
def test_usage_with_metrics_is_no_trap(source: str) -> None:
    metrics = f"metrics: {{{source}}}\n"
    assert told(conf("allocate, backfill", BASICS, "usage; predicates; proportion", more=metrics)) == []


# ---- queues ----


def compiled(**spec: object) -> Queue:
    return compile_queue(queue(str(spec.pop("name", "q"))).having(**spec).doc())


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        (
            {"guarantee": {"resource": {"cpu": "8"}}, "capability": {"cpu": "4"}},
            "its guarantee of cpu is 8, above its capability of 4",
        ),
        (
            {"guarantee": {"resource": {"memory": "8Gi"}}, "deserved": {"memory": "4Gi"}},
            "its guarantee of memory is 8Gi, above its deserved of 4Gi",
        ),
        ({"deserved": {"cpu": "2"}, "capability": {"cpu": "1"}}, "its deserved of cpu is 2, above its capability of 1"),
        ({"parent": "nowhere"}, 'its parent "nowhere" does not exist'),
        ({"parent": "q"}, "it is its own ancestor"),
    ],
)
def test_a_queue_that_contradicts_itself_is_reported(spec: dict[str, object], what: str) -> None:
    assert [trap.what for trap in traps_of_queues(None, [compiled(**spec)])] == [what]


def test_guarantees_beyond_the_cluster_are_reported() -> None:
    queues = [compiled(name=name, guarantee={"resource": {"cpu": "6"}}) for name in ("a", "b")]
    (trap,) = traps_of_queues(None, queues, {"cpu": 10_000})
    assert trap.what == "queues are guaranteed 12 cpu, and all nodes together have 10"


def test_children_may_not_be_promised_more_than_their_parent() -> None:
    queues = [compiled(name="p", deserved={"cpu": "4"})]
    queues += [compiled(name=name, parent="p", deserved={"cpu": "3"}) for name in ("a", "b")]
    (trap,) = traps_of_queues(None, queues)
    assert trap.what == "its children's deserved of cpu adds up to 6, its own is 4"


def test_parents_that_nobody_looks_at_are_reported() -> None:
    queues = [compiled(name="p"), compiled(name="c", parent="p")]
    (trap,) = traps_of_queues(load_volcano_config(CALM), queues)
    assert trap.what == "the parents of queues are ignored (c)"


def test_check_reads_queues_and_nodes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {kind: Queue, metadata: {name: big}, spec: {guarantee: {resource: {cpu: '20'}}}}\n"
        "- {kind: Node, metadata: {name: n}, status: {allocatable: {cpu: '16'}}}\n"
    )
    result = CliRunner().invoke(config_group, ["check", "default", "--queues", str(file)])
    assert "queues are guaranteed 20 cpu, and all nodes together have 16" in result.stdout
    assert result.exit_code == 0


def test_queues_that_deserve_more_than_there_is_are_reported() -> None:
    config = load_volcano_config(conf("allocate, backfill", BASICS, "predicates; capacity enableHierarchy: true"))
    queues = [compiled(name="p", deserved={"cpu": "6"})]
    queues += [compiled(name=name, parent="p", deserved={"cpu": "3"}) for name in ("a", "b")]
    (trap,) = traps_of_queues(config, queues, {"cpu": 5_000})
    assert trap.what == "queues deserve 6 cpu together, and all nodes have 5"
    assert traps_of_queues(config, queues, {"cpu": 6_000}) == []


def test_reclaim_where_nobody_gives_is_reported() -> None:
    config = load_volcano_config(conf("allocate, backfill, reclaim", "gang; conformance; pdb; predicates; proportion"))
    mean = [compiled(name=name, reclaimable=False) for name in ("a", "b")]
    assert [trap.what for trap in traps_of_queues(config, mean)] == ["reclaim will take nothing from anybody"]
    assert traps_of_queues(config, [*mean, compiled(name="c")]) == []


# ---- groups ----

TREE = conf("enqueue, allocate, backfill", BASICS, "predicates; capacity enableHierarchy: true")


@pytest.mark.parametrize(
    ("in_queue", "needs", "what"),
    [
        ("nowhere", "1", 'its queue "nowhere" does not exist'),
        ("team", "1", 'its queue "team" has queues below it'),
        ("leaf", "5", "its minResources of cpu is 5, and the capability of queue team is 4"),
        ("free", "9", "its minResources of cpu is 9, and all nodes together have 8"),
        ("leaf", "4", None),
    ],
)
def test_a_group_that_can_never_start_is_reported(in_queue: str, needs: str, what: str | None) -> None:
    queues = [compiled(name="team", capability={"cpu": "4"}), compiled(name="leaf", parent="team")]
    group = compile_group(podgroup("g", 1).in_queue(in_queue).having(minResources={"cpu": needs}).doc())
    traps = traps_of_groups(load_volcano_config(TREE), [group], [*queues, compiled(name="free")], total={"cpu": 8_000})
    assert [trap.what for trap in traps] == ([what] if what else [])


def test_a_group_that_runs_is_no_trap() -> None:
    group = podgroup("g", 1).in_queue("nowhere").doc() | {"status": {"phase": "Running"}}
    assert traps_of_groups(load_volcano_config(TREE), [compile_group(group)], []) == []


# ---- where queues come from ----

PROMISES = "queues are guaranteed 20 cpu, and all nodes together have 16"
VAST = "its minResources of cpu is 30, and all nodes together have 16"


def promising() -> list[Doc]:
    big = queue("big").deserving(cpu="20").having(guarantee={"resource": {"cpu": "20"}}).doc()
    vast = podgroup("vast", 1).in_queue("big").having(minResources={"cpu": "30"}).doc()
    return [big, node("n").offers(cpu="16").doc(), vast]


def check(*arguments: str) -> Result:
    return CliRunner().invoke(config_group, ["check", "default", *arguments])


def test_check_reads_several_files_and_directories(tmp_path: Path) -> None:
    directory = tmp_path / "manifests"
    directory.mkdir()
    first, second, third = promising()
    (directory / "queue.yaml").write_text(json.dumps(first))
    (directory / "notes.txt").write_text("not a manifest: {")
    (directory / "group.json").write_text(json.dumps(third))
    (tmp_path / "node.yaml").write_text(json.dumps(second))
    result = check("--queues", str(directory), "--queues", str(tmp_path / "node.yaml"))
    assert PROMISES in result.stdout
    assert f"podgroup default/vast: {VAST}" in result.stdout
    assert "with 1 queues and 1 groups" in result.stdout


def test_check_reads_a_snapshot(tmp_path: Path) -> None:
    file = tmp_path / "cluster.gz"
    write_snapshot(file, promising(), now=0.0, redaction=RedactionOptions())
    assert PROMISES in check("--queues", str(file)).stdout


def test_check_reads_a_cluster() -> None:
    with Harness() as harness:
        harness.apply(*promising())
        result = check("--kubeconfig", str(harness.serve()), "--strict")
    assert PROMISES in result.stdout
    assert f"podgroup default/vast: {VAST}" in result.stdout
    assert result.exit_code == 1


def test_check_says_when_there_are_no_queues(tmp_path: Path) -> None:
    file = tmp_path / "nothing.yaml"
    file.write_text("{}")
    result = check("--queues", str(file))
    assert (result.exit_code, "has no Queue in it" in result.output) == (2, True)
    assert check("--queues", str(file), "--context", "x").exit_code == 2
