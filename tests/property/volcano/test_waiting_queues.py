"""Queues whose gangs are larger than what they deserve: one starts, and the cluster never stands still for ever."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from fairlead.core.model import kinds
from fairlead.testing.builders import Builder, node, queue
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.explain.group import explain_job
from tests.support.documents import GROUP
from tests.support.volcano import VolcanoHarness, conf, round_drivers

CASES = int(os.environ.get("FAIRLEAD_QUEUES", "50"))
SEED = int(os.environ.get("FAIRLEAD_FUZZ_SEED") or 0)
TREES = conf(
    "enqueue, allocate, backfill",
    "priority; gang; conformance",
    "overcommit; drf; predicates; capacity enableHierarchy: true; nodeorder",
)
"""Queues in trees, of which only capacity knows."""


def two_gangs(preset: str, *, compatible: bool) -> VolcanoHarness:
    queues: list[Builder] = [queue("a"), queue("b")]
    world = VolcanoHarness(PRESETS[preset], [node("n")], queues=queues, compatible=compatible)
    for name in "ab":
        world.gang(name, 8, queue=name, asks={"cpu": "1"}, needs={"cpu": "8"})
    world.run(30)
    return world


@pytest.mark.parametrize("preset", ["default", "shipped", "kube-batch"])
def test_one_of_two_gangs_starts_that_are_larger_than_what_their_queues_deserve(preset: str) -> None:
    assert sorted(two_gangs(preset, compatible=False).running("").values()) == [8]


def test_kube_batch_starts_one_as_its_source_does_and_volcano_none() -> None:
    assert sum(two_gangs("kube-batch", compatible=True).running("").values()) == 8
    assert sum(two_gangs("default", compatible=True).running("").values()) == 0


def test_in_compatible_mode_both_are_named_as_waiting_for_each_other() -> None:
    world = two_gangs("default", compatible=True)
    for own, other in ("ab", "ba"):
        told = explain_job(round_drivers(world.scheduler)[0], "default", own)
        assert told is not None
        (quota,) = [check for check in told.checks if check.name == "quota"]
        words = f"default/{other} of queue {other} waits for more than its queue deserves as well"
        assert f"{words}: they wait for each other" in quota.text


def drawn(rng: Random) -> tuple[VolcanoHarness, list[str]]:
    """A cluster with a list or a tree of queues and gangs in them, and the gangs that fit it and their queue."""
    tree = rng.random() < 0.5
    cores = [rng.choice([2, 4, 8]) for _ in range(rng.randint(1, 3))]
    total = sum(cores)
    inner = ["team-0", "team-1"] if tree else []
    leaves = [f"q{at}" for at in range(rng.randint(1, 4))]
    caps = {name: rng.randint(1, total) for name in leaves if rng.random() < 0.4}
    queues: list[Builder] = [queue(name) for name in inner]
    for name in leaves:
        made = queue(name).weighing(rng.randint(1, 4))
        made = made.capped_at(cpu=str(caps[name])) if name in caps else made
        queues.append(made.having(parent=rng.choice(inner)) if tree else made)
    text = TREES if tree else PRESETS[rng.choice(["default", "shipped"])]
    world = VolcanoHarness(
        text,
        [node(f"n{at}").offers({"cpu": str(cpu), "memory": "16Gi", "pods": "110"}) for at, cpu in enumerate(cores)],
        queues=queues,
    )
    fitting = []
    for at in range(rng.randint(2, 6)):
        name, size, into = f"g{at}", rng.randint(1, total), rng.choice(leaves)
        fitting += [name] * (size <= caps.get(into, total))
        run_time = f"{rng.randint(5, 60)}s"
        world.gang(name, size, queue=into, asks={"cpu": "1"}, needs={"cpu": str(size)}, run_time=run_time)
    return world, fitting


@pytest.mark.parametrize("part", range(5))
def test_nothing_waits_for_ever_that_fits_the_free_nodes_and_its_queue(part: int) -> None:
    for case in range(part, CASES, 5):
        world, fitting = drawn(Random(f"{SEED}/{case}"))
        world.run(600)
        ended = Counter[str]()
        for one in world.list(kinds.POD):
            ended[one["metadata"]["annotations"][GROUP]] += one["status"].get("phase") == "Succeeded"
        left = [name for name in fitting if not ended[name]]
        assert not left, f"FAIRLEAD_FUZZ_SEED={SEED}, case {case}: {left} never started"
