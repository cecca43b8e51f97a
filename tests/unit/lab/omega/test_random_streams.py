"""Our blocks of java.util.Random's numbers are the numbers that Java draws."""

from __future__ import annotations

from fairlead.lab.omega.placing import RandomFirstFit
from fairlead.lab.omega.streams import BLOCK, JavaStream, OwnStream


def test_machines_are_drawn_as_java_draws_them() -> None:
    """`new Random(42)` gives 0, 3, 8, 4, 0 for nextInt(10)."""
    assert RandomFirstFit(10, JavaStream(42)).place([9] * 10, 5) == [0, 3, 8, 4, 0]


def test_a_power_of_two_takes_the_high_bits() -> None:
    """`new Random(0)` gives 11, 13, 3, 9 for nextInt(16)."""
    assert RandomFirstFit(16, JavaStream(0)).place([9] * 16, 4) == [11, 13, 3, 9]


def test_blocks_follow_each_other() -> None:
    state = 42 ^ 0x5DEECE66D
    expected = []
    for _ in range(BLOCK + 3):
        state = (state * 0x5DEECE66D + 11) % (1 << 48)
        expected.append(state >> 17)
    stream = JavaStream(42)
    assert [*stream.block(), *stream.block()[:3]] == expected


def test_full_machines_are_drawn_once_in_a_plan() -> None:
    placing = RandomFirstFit(4, OwnStream(1))
    assert placing.place([0, 0, 1, 0], 2) == [2]
    assert placing.misses == 4


def test_a_picky_scheduler_never_uses_the_last_machines() -> None:
    placing = RandomFirstFit(10, OwnStream(1), pickiness=0.35)
    assert max(placing.place([100] * 10, 200)) == 6
