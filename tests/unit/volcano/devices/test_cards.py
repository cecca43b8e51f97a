"""Cards are shared, partitioned and held without rounds and tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fairlead.volcano.devices.card_requests import CardRequest
from fairlead.volcano.devices.card_sharing import BINPACK, SPREAD, CardSharing, SharingRules
from fairlead.volcano.devices.card_table import Card, CardHolding, Cards, CardTable
from fairlead.volcano.devices.holdings import Holdings
from fairlead.volcano.devices.mig import Geometry, Instance, Part

HALVES = (Geometry("half", (Instance("1g", 40, 2),)),)


def table(*, partitioned: bool = False) -> CardTable:
    """Row 0 has two cards of 80, row 1 has none."""
    geometries = HALVES if partitioned else ()
    cards = tuple(Card(place, f"card{place}", 4, 80, "kind", geometries) for place in range(2))
    return CardTable({0: Cards(cards, partitioned=partitioned)}, 2)


def wants(memory: int, cores: int = 0, number: int = 1) -> CardRequest:
    return CardRequest(number, memory, None, cores)


@pytest.mark.parametrize(("policy", "place"), [(BINPACK, 0), (SPREAD, 1), ("", 1)])
def test_the_policy_decides_which_card_is_taken(policy: str, place: int) -> None:
    cards = table()
    cards.take([CardHolding(0, 0, 20, 0)])
    chosen = CardSharing(cards, SharingRules(policy)).choose([wants(20)], 0, cards.exists[0])
    assert chosen == [[CardHolding(0, place, 20, 0, None, 20)]]


def test_containers_of_a_pod_do_not_get_the_same_room_twice() -> None:
    cards = table()
    sharing = CardSharing(cards, SharingRules())
    assert sharing.fits([wants(60), wants(60)], cards.exists)[0]
    assert not sharing.fits([wants(60), wants(60), wants(60)], cards.exists)[0]
    assert not sharing.fits([wants(10, cores=100), wants(10, cores=100), wants(10)], cards.exists)[0]


def test_scores_of_all_rows_are_those_of_the_cards_that_would_be_taken() -> None:
    for policy in (BINPACK, SPREAD):
        cards = table()
        cards.take([CardHolding(0, 0, 20, 10)])
        sharing = CardSharing(cards, SharingRules(policy))
        chosen = sharing.choose([wants(20)], 0, cards.exists[0])
        assert chosen is not None
        assert sharing.scores([wants(20)], cards.exists).tolist() == [sharing.score(chosen), 0.0]


def test_a_partitioned_card_gives_parts_and_counts_their_size() -> None:
    cards = table(partitioned=True)
    sharing = CardSharing(cards, SharingRules(BINPACK))
    chosen = sharing.choose([wants(30), wants(30), wants(30)], 0, cards.exists[0])
    assert chosen is not None
    assert [(held.place, held.part, held.memory, held.asked) for (held,) in chosen] == [
        (0, Part("half", 0), 40, 30),
        (0, Part("half", 1), 40, 30),
        (1, Part("half", 0), 40, 30),
    ]


class Counter:
    """Stands for the table that counts holdings."""

    def __init__(self) -> None:
        self.used = np.zeros(1)

    def take(self, held: Sequence[int], sign: int) -> None:
        self.used += sign * sum(held)


def test_what_an_ending_pod_has_can_be_promised_but_not_used() -> None:
    counter = Counter()
    holdings = Holdings(counter.take)
    holdings.put("old", [3])
    assert not holdings.release("old", ending=True)
    assert counter.used == 0
    seen: list[float] = []

    def look() -> list[int] | None:
        seen.append(float(counter.used[0]))
        return None

    assert holdings.give("new", look) is None
    assert holdings.give("new", lambda: holdings.without_endings(look)) is None
    assert seen == [0, 3]
    assert holdings.give("old", look) == [3]
    assert counter.used == 3
    assert holdings.release("old", ending=False)
    assert (counter.used, holdings.held) == (0, {})


def test_a_simulated_ending_is_taken_back() -> None:
    counter = Counter()
    holdings = Holdings(counter.take)
    holdings.put("pod", [2])
    holdings.simulate_ending("pod")
    assert counter.used == 0
    holdings.simulate_return("pod")
    assert (counter.used, holdings.ending) == (2, {})
