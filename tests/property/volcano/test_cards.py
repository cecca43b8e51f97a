"""Cards: judged at once as one by one, never given twice, and as before when everything was taken back."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.volcano.devices.device_config import DeviceConfig
from fairlead.volcano.devices.deviceshare import DeviceShare
from fairlead.volcano.devices.vgpus import Vgpus
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.round import Round
from tests.support.cards import A100, OFFERS, REGISTER, containers
from tests.support.rounds import RoundScenario, task

KINDS = ((16000, "NVIDIA-T4"), (40960, "NVIDIA-A100-SXM4-40GB"))
CARDS = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(KINDS)), min_size=1, max_size=3)
NODES = st.lists(st.tuples(CARDS, st.sampled_from(("hami-core", "mig"))), min_size=1, max_size=3)
REQUEST = st.fixed_dictionaries(
    {"volcano.sh/vgpu-number": st.sampled_from(("1", "1", "2"))},
    optional={
        "volcano.sh/vgpu-memory": st.sampled_from(("1000", "5000", "9000")),
        "volcano.sh/vgpu-cores": st.sampled_from(("10", "50", "100")),
    },
)
PODS = st.lists(st.lists(REQUEST, min_size=1, max_size=2), min_size=1, max_size=5)
RULES: list[dict[str, str]] = [{"kind": "0"}]


def pool(policy: str) -> Vgpus:
    return Vgpus(DeviceConfig.of(A100).nvidia, policy=policy, rules=RULES)


def opened(
    nodes: list[Any], pods: list[list[dict[str, str]]], cards: Vgpus, *, compatible: bool = False
) -> tuple[Round, DeviceShare]:
    yard = RoundScenario().queue("default").group("job")
    for at, (listed, mode) in enumerate(nodes):
        entries = (
            f"n{at}c{card},{slots},{memory},{model},true,{mode}:"
            for card, (slots, (memory, model)) in enumerate(listed)
        )
        yard.node(f"n{at}", annotations={REGISTER: "".join(entries)}, **OFFERS)
    for at, several in enumerate(pods):
        yard.pod(f"p{at}", "job", containers=containers(*several), labels={"kind": str(at % 2)})
    plugin = DeviceShare([cards], weight=1)
    return yard.open(plugin, compatible=compatible), plugin


def move(round: Round, plugin: DeviceShare, name: str, row: int, status: TaskStatus) -> bool:
    """Place or promise a task; whether it got its cards."""
    placed = task(round, name)
    assert placed.job is not None
    placed.job.move(placed, status)
    placed.row = row
    if plugin.allocated(placed) is None:
        return True
    placed.job.move(placed, TaskStatus.PENDING)
    placed.row = -1
    return False


def take_back(round: Round, plugin: DeviceShare, name: str) -> None:
    gone = task(round, name)
    assert gone.job is not None
    gone.job.move(gone, TaskStatus.PENDING)
    plugin.deallocated(gone)
    gone.row = -1


def check_nobody_has_too_much(cards: Vgpus) -> None:
    table = cards._cards
    assert (table.used_number <= table.slots).all()
    assert (table.used_memory <= table.memory).all()
    assert (table.used_cores <= 100).all()
    for parts in table.parts.values():
        assert len(set(parts)) == len(parts)
        assert len({part.group for part in parts}) <= 1


@settings(max_examples=40)
@given(nodes=NODES, pods=PODS, policy=st.sampled_from(("", "binpack", "spread")), data=st.data())
def test_no_card_is_ever_given_twice_and_all_is_free_when_all_are_gone(
    nodes: list[Any], pods: list[list[dict[str, str]]], policy: str, data: st.DataObject
) -> None:
    cards = pool(policy)
    round, plugin = opened(nodes, pods, cards)
    placed: set[str] = set()
    for _ in range(8):
        name = f"p{data.draw(st.integers(0, len(pods) - 1))}"
        if name in placed:
            take_back(round, plugin, name)
            placed.discard(name)
            continue
        status = data.draw(st.sampled_from((TaskStatus.ALLOCATED, TaskStatus.PIPELINED)))
        row = int(data.draw(st.sampled_from(round.rows.tolist())))
        fits = bool(cards._fitting(task(round, name))[row])
        assert move(round, plugin, name, row, status) is fits, "who is judged to fit gets its cards, and nobody else"
        if fits:
            placed.add(name)
        check_nobody_has_too_much(cards)
    for name in placed:
        take_back(round, plugin, name)
    table = cards._cards
    assert not table.used_number.any()
    assert not table.used_memory.any()
    assert not any(table.parts.values())
    assert not any(cards._holders.values())


@settings(max_examples=40)
@given(nodes=NODES, pods=PODS, policy=st.sampled_from(("binpack", "spread")), compatible=st.booleans())
def test_nodes_are_judged_and_liked_at_once_as_one_by_one(
    nodes: list[Any], pods: list[list[dict[str, str]]], policy: str, compatible: bool
) -> None:
    cards = pool(policy)
    round, plugin = opened(nodes, pods, cards, compatible=compatible)
    for at in range(len(pods) - 1):
        move(round, plugin, f"p{at}", int(round.rows[at % len(round.rows)]), TaskStatus.ALLOCATED)
    last = task(round, f"p{len(pods) - 1}")
    fitting, liked = cards._fitting(last), cards.liking(last)
    for row in round.rows.tolist():
        chosen = cards._sharing.choose(cards._requests(last), row, cards._open_to(last)[row])
        assert bool(fitting[row]) is (chosen is not None)
        assert np.isclose(liked[row], cards._sharing.score(chosen) if chosen is not None else 0.0)
