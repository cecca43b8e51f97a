"""The sweep: each run once undisturbed, then once for each event and each thing that can happen there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product

from tests.support.sweep.judging import State, broken_invariants, difference, end_state
from tests.support.sweep.perturbed import Perturbation, Trouble
from tests.support.sweep.stories import STORIES, Story

Case = tuple[Story, Perturbation]
MOST_EVENTS = 80
SECONDS = (5.0, 2.0, 30.0)
"""How long silence and lateness last: shorter than a backoff, as long as one, and longer than a Job lives."""


@lru_cache
def undisturbed(story: Story) -> tuple[int, State]:
    """The number of events of a run, and its end state."""
    world = story.play()
    problems = broken_invariants(world)
    assert not problems, (story.name, problems)
    return len(world.perturbed.events), end_state(world)


def cases() -> Iterator[Case]:
    """All perturbations, those of other seconds after those of the first; a restart takes no time that could vary."""
    for seconds in SECONDS:
        troubles = [Trouble.DROP, Trouble.STALE] if seconds != SECONDS[0] else list(Trouble)
        for story in STORIES:
            for event, trouble in product(range(undisturbed(story)[0]), troubles):
                yield story, Perturbation(trouble, event, seconds)


def share(each: int) -> Iterator[Case]:
    """So many perturbations of each run, spread over its events and over what can happen."""
    for at, story in enumerate(STORIES):
        events, troubles = undisturbed(story)[0], list(Trouble)
        for number in range(each):
            event = (2 * number + 1) * events // (2 * each)
            yield story, Perturbation(troubles[(at + number) % len(troubles)], event)


def problem(case: Case) -> str:
    """What came out differently, or nothing."""
    story, perturbation = case
    world = story.play(perturbation)
    found = broken_invariants(world) + difference(end_state(world), undisturbed(story)[1])
    return f"{story.name}: {perturbation}: {'; '.join(found)}" if found else ""


def problems(chosen: Iterable[Case]) -> list[str]:
    return [found for case in chosen if (found := problem(case))]
