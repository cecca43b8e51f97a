"""Random clusters, queues and gangs of which Volcano leaves nothing to chance, so that two schedulers can be compared.

All pods ask for one core, gangs differ in priority, and sums of queues are compared only where no tie between queues
decides. What Volcano breaks by creation time and uid does not come up.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class StoryQueue:
    name: str
    weight: int
    capability: int | None


@dataclass(frozen=True, slots=True)
class StoryGang:
    name: str
    queue: str
    minimum: int
    members: int
    priority: int
    needs: bool
    """Whether it says what its minimum needs, so that it has to be let in."""


@dataclass(frozen=True, slots=True)
class Story:
    number: int
    nodes: tuple[int, ...]
    """Cores of each."""
    queues: tuple[StoryQueue, ...]
    gangs: tuple[StoryGang, ...]


def story(number: int) -> Story:
    rng = Random(number)
    nodes = tuple(rng.randint(2, 6) for _ in range(rng.randint(1, 4)))
    queues = tuple(
        StoryQueue(f"s{number}-q{at}", rng.randint(1, 3), rng.choice([None, None, rng.randint(2, 8)]))
        for at in range(rng.choice([1, 1, 2, 3]))
    )
    priorities = rng.sample(range(1, 20), rng.randint(1, 5))
    gangs = []
    for at, priority in enumerate(priorities):
        minimum = rng.randint(1, 5)
        gangs.append(
            StoryGang(
                name=f"s{number}-g{at}",
                queue=rng.choice(queues).name,
                minimum=minimum,
                members=minimum + rng.choice([0, 0, 1, 2]),
                priority=priority,
                needs=len(queues) == 1 and rng.random() < 0.5,
            )
        )
    return Story(number, nodes, queues, tuple(gangs))
