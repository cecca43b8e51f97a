"""The numbers of Go's math/rand, compared with what a Go program printed for seed 42."""

from __future__ import annotations

from papers.fragmentation.go_random import GoRandom


def test_the_draws_of_a_seed_are_those_of_go() -> None:
    rng = GoRandom(42)
    assert rng.int63() == 3440579354231278675
    numbers = list(range(8152))
    rng.shuffle(numbers)
    assert numbers[:10] == [255, 1685, 6784, 4463, 602, 1564, 3882, 7257, 6545, 1541]
    assert [rng.intn(8152) for _ in range(5)] == [3888, 5689, 2936, 788, 5416]


def test_a_permutation_has_every_number_once() -> None:
    assert sorted(GoRandom(7).permutation(100)) == list(range(100))


def test_a_limit_that_is_a_power_of_two_is_kept() -> None:
    rng = GoRandom(3)
    assert {rng.intn(4) for _ in range(100)} == {0, 1, 2, 3}


def test_a_copy_goes_on_with_the_same_numbers_and_leaves_the_original_alone() -> None:
    rng = GoRandom(5)
    rng.shuffle(list(range(700)))
    twin = rng.copy()
    ahead = [twin.intn(1000) for _ in range(800)]
    assert [rng.intn(1000) for _ in range(800)] == ahead
