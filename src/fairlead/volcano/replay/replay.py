"""Replay of Volcano's rounds: run a recorded round again, guided, and say where the two part.

Volcano breaks ties by chance and walks maps in any order, so a round is followed step by step: whatever we would do
next must be what was recorded, or something that our orders and scores leave to chance; then the recorded one is done.
A round agrees when every step was allowed and none is missing or left over, every score is equal to 1e-6, and binds,
evictions, phases and messages are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.nodes import Nodes
from fairlead.errors import ConfigError, ScenarioError
from fairlead.kube.replay.replay import DecisionDifference
from fairlead.volcano.kinds import VC_HYPER_NODE, VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.replay.room import Ahead, as_shown, as_taken, as_tried
from fairlead.volcano.replay.trail import Lost, Trail
from fairlead.volcano.rounds.action_table import run_actions
from fairlead.volcano.rounds.closing import Closing, close_round
from fairlead.volcano.rounds.opening import RoundContext, open_round
from fairlead.volcano.rounds.round import Choices, Witness
from fairlead.volcano.rounds.transaction import lack_of_room

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind
    from fairlead.core.state.images import Image
    from fairlead.kube.replay.recording import Scenario
    from fairlead.volcano.rounds.round import Job, QueueState, Round, SubJob, Task
    from fairlead.volcano.rounds.settings import Rounds

_PRIORITY_CLASSES = {"low": 10, "mid": 100, "high": 1000}
_NOW = 4_102_444_800.0
_TOLERANCE = 1e-6
_ORIGIN = ". Origin reason is "
_TRIES = 96
"""How often choices are made anew, as long as jobs and queues come in the order of ours; an eighth of it after that."""
_WALKS = 12
"""Other orders in which jobs come into heaps, which shows where shares change while they wait there, and in which
queues are summed up, which shows where rounding does."""
Item = TypeVar("Item")


class Parted(Exception):
    """Our round does what the recorded one did not."""

    def __init__(self, field: str, expected: Any, got: Any, task: Task | None = None) -> None:
        super().__init__(field)
        self.field = field
        self.expected = expected
        self.got = got
        self.task = task


class Guide(Choices, Witness):
    """Makes the recorded choices wherever there is one to make, and raises Parted where there is none to follow."""

    def __init__(self, steps: Sequence[Doc], rng: Random, bound: Collection[str] | None = None) -> None:
        super().__init__(rng)
        self._steps = steps
        self._bound = bound
        self.trail = Trail()
        self.shuffle = 0
        """Which order jobs and queues come in, if not in ours."""
        self.at = 0
        self._action = ""
        self.round: Round | None = None

    # ---- choices ----

    def node(self, task: Task, rows: Sequence[int]) -> int:
        """The one that the next recorded step puts the task on, or makes room for it on."""
        step = self._peek()
        assert self.round is not None
        row = self.round.cluster.table.row_of.get(step.get("node", ""), -1)
        if step.get("pod") != task.name:
            row = self._ahead().row_for(task)
        return row if row in rows else rows[0]

    def hyper_node(self, sub_job: SubJob, names: Sequence[str]) -> str:
        assert self.round is not None
        node = self._peek().get("node", "")
        return next((name for name in names if node in self.round.topology.nodes_of(name)), names[0])

    def walk(self, what: str, items: Sequence[Item]) -> Iterable[Item]:
        if what == "starving":
            return as_taken(items, self._ahead, lambda names: self.trail.choose(what, self.at, what, names))  # type: ignore[arg-type, return-value]
        if what == "allocated":
            return self._as_bound(items)  # type: ignore[arg-type, return-value]
        if what in ("jobs", "queues") and self.shuffle:
            return Random(self.shuffle).sample(items, len(items))
        return items

    def _as_bound(self, tasks: Sequence[Task]) -> Sequence[Task]:
        """Those that were bound, then one that could not be, which ended it."""
        bound, round = self._bound, self.round
        if bound is None or round is None:
            return tasks
        return sorted(tasks, key=lambda task: (task.name not in bound, lack_of_room(round, task) is None))

    def hyper_nodes(self, job: Job, names: Sequence[str]) -> Iterator[str]:
        """Each time the one that the next recorded step is in. A trial that placed nothing was most likely in one that
        no step before the next commit is in. Also one that leaves no step matters, as it forgets what others were
        offered: so where that differs, any order is tried."""
        about = job.name if self._action == "allocate" else f"{job.name} ({self._action})"
        variant = self.trail.variant(about)
        shuffled = Random(variant).sample(names, len(names)) if variant else list(names)
        while shuffled:
            options = shuffled if variant % 2 else sorted(shuffled, key=self._far_from_what_comes())
            chosen = self.trail.choose(about, self.at, tuple(names), options)
            shuffled.remove(chosen)
            yield chosen

    def _far_from_what_comes(self) -> Callable[[str], tuple[bool, bool]]:
        """Says of a hypernode that the next step is not in it, and that one before the next commit is."""
        assert self.round is not None
        nodes_of, node, soon = self.round.topology.nodes_of, self._ahead().node(), self._nodes_until_commit()
        return lambda name: (node not in nodes_of(name), bool(nodes_of(name) & soon))

    def _nodes_until_commit(self) -> set[str]:
        nodes = set()
        for step in self._steps[self.at :]:
            if step.get("do") == "commit":
                break
            nodes.add(step.get("node", ""))
        return nodes

    def ranked(self, task: Task, rows: NDArray[np.int32], scores: NDArray[np.float64]) -> Iterable[int]:
        self._check_scores_ahead(task)
        return as_tried(task, rows, scores, self._ahead)

    def _check_scores_ahead(self, task: Task) -> None:
        """The scores by which nodes are tried are recorded with the placement that the trials lead to."""
        for step in self._steps[self.at :]:
            if step.get("do") == "pipeline" and step.get("pod") == task.name and "scores" in step:
                _check_scores(step["scores"], self._scores_of(task), task)
            if step.get("do") != "discard" and step.get("for") != task.name:
                return

    def _scores_of(self, task: Task) -> dict[str, float]:
        assert self.round is not None
        table, scores = self.round.cluster.table, self.round.search.scores
        if scores is None or scores.task is not task:
            return {}
        return {table.name(int(row)): float(total) for row, total in zip(scores.rows, scores.totals, strict=True)}

    def suspects(self, task: Task, row: int, tasks: Sequence[Task]) -> Sequence[Task]:
        return as_shown(task, row, tasks, self._ahead())

    def _ahead(self) -> Ahead:
        assert self.round is not None
        return Ahead(self.round, self._steps, self.at)

    # ---- what happens ----

    def action(self, name: str) -> None:
        self._meet({"action": name})
        self._action = name

    def placed(self, task: Task, *, pipelined: bool) -> None:
        assert self.round is not None
        table = self.round.cluster.table
        step = self._peek()
        mine = self._scores_of(task)
        recorded = step.get("scores")
        if step.get("pod") == task.name and recorded is not None:
            _check_scores(recorded, mine, task)
        self._meet({"do": "pipeline" if pipelined else "allocate", "pod": task.name, "node": table.name(task.row)})
        if recorded is None:
            if len(mine) > 1:
                raise Parted("candidates", None, mine)
            return
        if step["action"] in ("allocate", "backfill") and mine[step["node"]] < max(mine.values()) - _TOLERANCE:
            raise Parted("node", step["node"], mine)

    def evicted(self, task: Task, preemptor: Task | None) -> None:
        """For whom it is is not recorded of evictions that were thought through before."""
        step = {"do": "evict", "pod": task.name}
        selected = preemptor is not None and "for" in self._peek()
        self._meet({**step, "for": preemptor.name} if preemptor is not None and selected else step)

    def committed(self) -> None:
        self._meet({"do": "commit"})

    def discarded(self) -> None:
        self._meet({"do": "discard"})

    def overused(self, queue: QueueState) -> None:
        """gangreclaim passes over queues without a word."""
        if self._action == "gangreclaim":
            return
        self._meet({"overused": queue.name})

    # ---- following ----

    def _peek(self) -> Doc:
        return self._steps[self.at] if self.at < len(self._steps) else {}

    def _meet(self, mine: Doc) -> None:
        step = self._peek()
        if any(step.get(field) != value for field, value in mine.items()):
            raise Parted(f"steps[{self.at}]", {k: v for k, v in step.items() if k != "scores"}, mine)
        self.at += 1

    def finish(self) -> None:
        if self.at < len(self._steps):
            raise Parted(f"steps[{self.at}]", self._peek(), None)


def _check_scores(recorded: dict[str, float], mine: dict[str, float], task: Task) -> None:
    if recorded.keys() != mine.keys():
        raise Parted("candidates", recorded, mine)
    if any(abs(recorded[name] - mine[name]) > _TOLERANCE for name in mine):
        raise Parted("scores", recorded, mine, task)


class ImagesSeen:
    """How many nodes had an image when each node was last looked at, as far as a recording shows.

    Volcano counts an image's nodes when it comes to know a node, and its workers take up nodes in any order; so each
    node that has an image may have seen any number of them from one up. The scores of a round say which it was."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], int] = {}

    def show(self, cluster: Cluster) -> None:
        for (name, node), count in self._seen.items():
            cluster.table.images.by_name[name].recall(cluster.table.row_of[node], count)

    def learn(self, parted: Parted, round: Round) -> bool:
        """Whether counts explain the scores, and counts that are not known yet."""
        task = parted.task
        if parted.field != "scores" or task is None or len(task.pod.shape.images) != 1:
            return False
        image = round.cluster.table.images.by_name.get(task.pod.shape.images[0])
        if image is None:
            return False
        learnt = {}
        for node, expected in parted.expected.items():
            gap = expected - parted.got[node]
            if abs(gap) <= _TOLERANCE:
                continue
            key = (task.pod.shape.images[0], node)
            count = self._count(round, task, image, node, gap)
            if count is None or key in self._seen:
                return False
            learnt[key] = count
        self._seen.update(learnt)
        return True

    def _count(self, round: Round, task: Task, image: Image, node: str, gap: float) -> int | None:
        """The count that makes up for a gap, whatever an image's score weighs."""
        row = round.cluster.table.row_of[node]
        if row not in image.nodes_seen:
            return None
        nodes = Nodes(round.cluster.table, np.array([row], dtype=np.int32))
        believed = image.nodes_seen[row]
        before = round.tiers.node_scores(task, nodes)[0]
        try:
            for count in range(1, len(image.nodes_seen) + 1):
                image.recall(row, count)
                round.cluster.table.static.touch(row)
                if abs(round.tiers.node_scores(task, nodes)[0] - before - gap) <= _TOLERANCE:
                    return count
        finally:
            image.recall(row, believed)
        return None


class VolcanoReplay:
    """Replays one recorded round. `rounds_for` makes of a configuration's text what to run."""

    def __init__(self, scenario: Scenario, rounds_for: Callable[[str], Rounds]) -> None:
        self._scenario = scenario
        self._doc = scenario.doc
        try:
            self._rounds = rounds_for(self._doc["conf"])
        except ConfigError as error:
            raise ScenarioError(f"{scenario.file}:{scenario.line}: 'conf' cannot be used: {error}") from error

    def differences(self) -> list[DecisionDifference]:
        doc = self._doc
        return [
            DecisionDifference(self._scenario.file, self._scenario.seed, int(doc.get("round", 0)), field, expected, got)
            for field, expected, got in self._replay()
        ]

    def _replay(self) -> Iterator[tuple[str, Any, Any]]:
        """Again and again, as long as what parted us says something about what was left to chance, or a choice is left
        that could have been another."""
        images = ImagesSeen()
        trail = Trail()
        shuffle = tries = 0
        first: list[tuple[str, Any, Any]] = []
        while shuffle <= _WALKS:
            guide = Guide(_with_actions(self._doc["steps"]), Random(0), self._doc["after"].get("binds"))
            guide.trail, guide.shuffle = trail, shuffle
            trail.start()
            round = self._open(guide)
            images.show(round.cluster)
            blamed: set[str] = set()
            try:
                for _ in run_actions(round):
                    pass
                guide.finish()
                found = list(self._compare(round, close_round(round)))
                if not found:
                    return
                blamed = {name for field, _, _ in found for name in _jobs_of(field, round)}
            except Lost:
                found = []
            except Parted as parted:
                if images.learn(parted, round):
                    continue
                found = [(parted.field, parted.expected, parted.got)]
            first = first or found
            tries += 1
            goes_on = trail.vary(blamed) if blamed else trail.turn_back()
            if not goes_on or tries >= _TRIES // (8 if shuffle else 1):
                trail, shuffle, tries = Trail(), shuffle + 1, 0
        yield from first

    def _open(self, guide: Guide) -> Round:
        round = open_round(
            recorded_cluster(self._scenario),
            self._rounds,
            uid="replay",
            now=_NOW,
            rng=Random(0),
            context=RoundContext(choices=guide, witness=guide),
        )
        guide.round = round
        return round

    # ---- the end ----

    def _compare(self, round: Round, closing: Closing) -> Iterator[tuple[str, Any, Any]]:
        after = self._doc["after"]
        table = round.cluster.table
        if "binds" in after:
            binds = {task.name: table.name(row) for task, row in round.outcome.binds}
            if binds != after["binds"]:
                yield "binds", after["binds"], binds
        if "evicted" in after:
            evicted = sorted(task.name for task, _ in round.outcome.evictions)
            if evicted != sorted(after["evicted"]):
                yield "evicted", sorted(after["evicted"]), evicted
        yield from self._compare_groups(closing)
        if "unschedulable" in after:
            yield from self._compare_pods(round, closing)

    def _compare_groups(self, closing: Closing) -> Iterator[tuple[str, Any, Any]]:
        recorded = self._doc["after"]["podgroups"]
        for report in closing.groups:
            group = recorded.get(report.job.name)
            if group is None:
                continue
            name = f"podgroups.{report.job.name}"
            if (group.get("phase") or "") != report.phase:
                yield f"{name}.phase", group.get("phase"), report.phase
            mine = {condition.type: condition for condition in report.conditions}
            listed = {condition["type"]: condition for condition in group.get("conditions") or ()}
            if listed.keys() != mine.keys():
                yield f"{name}.conditions", sorted(listed), sorted(mine)
                continue
            for kind, condition in listed.items():
                if (condition["status"], condition["reason"]) != (mine[kind].status, mine[kind].reason) or not _says(
                    mine[kind].message, condition.get("message") or "", report.job
                ):
                    yield f"{name}.conditions.{kind}", condition, mine[kind]

    def _compare_pods(self, round: Round, closing: Closing) -> Iterator[tuple[str, Any, Any]]:
        gone = {task.uid for task, _ in round.outcome.binds} | {task.uid for task, _ in round.outcome.evictions}
        mine = dict(_earlier(doc) for doc in self._doc["pods"] if doc["metadata"]["uid"] not in gone)
        jobs = {}
        for report in closing.pods:
            mine[report.task.name] = report.message
            jobs[report.task.name] = report.task.job
        recorded = self._doc["after"]["unschedulable"]
        for name in sorted({*recorded, *(name for name, message in mine.items() if message is not None)}):
            expected, got = recorded.get(name), mine.get(name)
            job = jobs.get(name)
            if expected is None or got is None or job is None:
                if expected != got:
                    yield f"unschedulable.{name}", expected, got
            elif not _says(got, expected, job, name):
                yield f"unschedulable.{name}", expected, got


_RECORDED: tuple[tuple[str, Kind], ...] = (
    ("nodes", kinds.NODE),
    ("queues", VC_QUEUE),
    ("podgroups", VC_POD_GROUP),
    ("hypernodes", VC_HYPER_NODE),
    ("pods", kinds.POD),
)


def recorded_cluster(scenario: Scenario) -> Cluster:
    """The cluster as it stood when the round began."""
    cluster = Cluster()
    metadata = {"name": "default", "labels": {"kubernetes.io/metadata.name": "default"}}
    cluster.apply(Change(Happened.ADDED, kinds.NAMESPACE, {"metadata": metadata}))
    for name, value in _PRIORITY_CLASSES.items():
        cluster.apply(Change(Happened.ADDED, kinds.PRIORITY_CLASS, {"metadata": {"name": name}, "value": value}))
    for field, kind in _RECORDED:
        for doc in scenario.doc.get(field) or ():
            cluster.apply(Change(Happened.ADDED, kind, {"apiVersion": kind.api_version, **doc}))
    if cluster.refused:
        raise ScenarioError(f"{scenario.file}:{scenario.line}: {cluster.refused[0]}")
    return cluster


def _jobs_of(field: str, round: Round) -> Iterator[str]:
    """The jobs that something recorded is about."""
    what, _, name = field.partition(".")
    for job in round.jobs.values():
        names = {task.name for task in job.tasks.values()}
        if (what == "podgroups" and name.startswith(f"{job.name}.")) or (what == "unschedulable" and name in names):
            yield job.name


def _with_actions(steps: Sequence[Doc]) -> list[Doc]:
    """The steps, each with the action it belongs to."""
    selected: list[Doc] = []
    action = ""
    for step in steps:
        action = step.get("action", action)
        selected.append({**step, "action": action})
    return selected


def _earlier(doc: Doc) -> tuple[str, str | None]:
    """What a pod's condition said before the round."""
    for condition in (doc.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return doc["metadata"]["name"], condition.get("message") or ""
    return doc["metadata"]["name"], None


def _says(mine: str, recorded: str, job: Job, name: str = "") -> bool:
    """Whether two texts are equal, of a group or of the pod that is named, where the task that is named as the origin
    may be any that has errors, and its errors may be worded in any way that chance allows."""
    if mine == recorded:
        return True
    own = {job.tasks[uid].name: errors for uid, errors in job.fit_errors.items()}
    if name in own and mine == own[name].message:
        return own[name].could_say(recorded)
    head, _, origin = recorded.partition(_ORIGIN)
    if mine.partition(_ORIGIN)[0] != head:
        return False
    named, _, message = origin.partition(": ")
    return named in own and own[named].could_say(message)
