"""Whether chance decides how a story ends: it is told in memory several times, with other uids, moments and map orders.

Volcano breaks ties between queues and jobs by the second of their creation and then by uid, ties between nodes by lot,
and walks over maps in any order. A story that ends alike however these fall may be told to two schedulers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from random import Random
from typing import TypeVar

from fairlead.core.model.flow import Change, Happened
from fairlead.core.model.kinds import POD, PRIORITY_CLASS, Kind
from fairlead.core.state.cluster import Cluster
from fairlead.volcano.config.build import profile_of_volcano
from fairlead.volcano.config.reading import load_volcano_config
from fairlead.volcano.kinds import VC_QUEUE
from fairlead.volcano.rounds.action_table import run_actions
from fairlead.volcano.rounds.opening import RoundContext, open_round
from fairlead.volcano.rounds.round import Choices
from fairlead.volcano.rounds.settings import rounds_of
from tests.support.real.volcano_stories import GROUP, PRIORITIES, Doc, Story, StoryQueue, story

TELLINGS = 12
Option = TypeVar("Option")


class AnyOrder(Choices):
    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self._shuffler = rng

    def walk(self, what: str, items: Sequence[Option]) -> Iterable[Option]:
        return self._shuffler.sample(list(items), len(items))


def stories_without_chance(setting: str, wanted: int) -> list[Story]:
    """The first so many. One in which everybody starts, or nobody, shows little."""
    return list(islice(_worth_telling(setting), wanted))


def _worth_telling(setting: str) -> Iterator[Story]:
    for number in count(1):
        told = story(setting, number)
        first = ending(told, Random(0))
        started = sum(first[gang.name] for gang in told.gangs)
        if not 0 < started < sum(gang.members for gang in told.gangs):
            continue
        if all(ending(told, Random(seed)) == first for seed in range(1, TELLINGS)):
            yield told


def ending(told: Story, rng: Random) -> dict[str, int]:
    """How one round over it ends, with everything that is left to chance drawn by `rng`."""
    profile = profile_of_volcano(load_volcano_config(told.conf))
    context = RoundContext(choices=AnyOrder(rng))
    round = open_round(_cluster(told, rng), rounds_of(profile), uid="r", now=1e9, rng=rng, context=context)
    for _ in run_actions(round):
        pass
    running = Counter(task.pod.annotations[GROUP] for task, _ in round.outcome.binds)
    return told.outcome(running)


def _cluster(told: Story, rng: Random) -> Cluster:
    """As it would be just before the scheduler's configuration is put in force."""
    cluster = Cluster()
    standing = [StoryQueue(name).document() for name in ("root", "default")]
    for kind, documents in [(PRIORITY_CLASS, priority_classes()), (VC_QUEUE, standing), *told.documents()]:
        for doc in rng.sample(documents, len(documents)):
            cluster.apply(Change(Happened.ADDED, kind, _made(kind, doc, rng)))
    assert not cluster.refused
    return cluster


def _made(kind: Kind, doc: Doc, rng: Random) -> Doc:
    """What a server, and whoever opens queues, add to a document."""
    moment = f"2026-01-01T00:00:0{rng.randint(0, 1)}Z"
    doc["metadata"] |= {"uid": f"{rng.getrandbits(64):016x}", "creationTimestamp": moment}
    if kind.namespaced:
        doc["metadata"]["namespace"] = "default"
    if kind is VC_QUEUE:
        doc["status"] = {"state": "Open"}
    if kind is POD:
        doc["spec"]["priority"] = int(doc["spec"]["priorityClassName"].removeprefix("p"))
    return doc


def priority_classes() -> list[Doc]:
    about = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return [{**about, "metadata": {"name": f"p{value}"}, "value": value} for value in PRIORITIES]
