"""RandomFirstFit: draws machines at random and puts a task on each that has room, until all have one or none is left.

A machine without room is swapped behind the end of the pool for the rest of the plan. The pool keeps its order from
plan to plan, as in the original: that changes no distribution, but a recorded run is repeated only with it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.lab.omega.streams import Stream


class RandomFirstFit:
    def __init__(self, machines: int, stream: Stream, *, pickiness: float = 0.0) -> None:
        self._pool = list(range(machines))
        self._usable = machines - math.floor(pickiness * machines)
        self._stream = stream
        self._numbers: list[int] = []
        self._next = 0
        self.misses = 0
        """How many machines were drawn in vain."""

    def place(self, room: list[int], tasks: int) -> list[int]:
        """Machines for so many tasks, in the order of drawing; fewer if there is no room. `room` is how many tasks fit
        on each machine, and is counted down."""
        pool, numbers, at = self._pool, self._numbers, self._next
        size, left = self._usable, tasks
        chosen: list[int] = []
        while left and size:
            if at == len(numbers):
                numbers, at = self._stream.block(), 0
            number = numbers[at]
            at += 1
            if size & (size - 1):
                index = number % size
                if number - index + size > 2147483648:
                    continue  # java.util.Random draws again, so that all indexes are equally likely
            else:
                index = (size * number) >> 31
            machine = pool[index]
            if room[machine]:
                room[machine] -= 1
                chosen.append(machine)
                left -= 1
            else:
                size -= 1
                pool[index] = pool[size]
                pool[size] = machine
        self._numbers, self._next = numbers, at
        self.misses += self._usable - size
        return chosen
