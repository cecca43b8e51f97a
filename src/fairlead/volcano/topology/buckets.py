"""Buckets: tasks of a job that would like to be on one node together, as the roles they have say.

Roles attract each other (affinity) or keep apart (anti-affinity), also among themselves. Tasks that are on nodes make
a bucket per node; each other one joins the bucket that it is attracted to most, or opens a new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from fairlead.volcano.records.amounts import Amounts

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, Task

_AFFINITY = "volcano.sh/task-topology-affinity"
_ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"
_ORDER = "volcano.sh/task-topology-task-order"
_SELF_ANTI, _AFFINE, _SELF, _ANTI = 4, 3, 2, 1
"""How much a role's topology matters when tasks are taken in order."""
_MEBI = 1024.0 * 1024.0


class Rules:
    """What a group's annotations say of its roles. `weights` are of roles that have any topology."""

    def __init__(self, attract: list[list[str]], repel: list[list[str]], order: list[str]) -> None:
        self.weights: dict[str, int] = {}
        self.attracted = self._pairs(attract, _SELF, _AFFINE)
        self.repelled = self._pairs(repel, _SELF_ANTI, _ANTI)
        self.order = {role: len(order) - place for place, role in enumerate(order)}

    def _pairs(self, groups: list[list[str]], alone: int, together: int) -> set[tuple[str, str]]:
        """Pairs of roles; a group of one is a pair with itself."""
        pairs: set[tuple[str, str]] = set()
        for group in groups:
            weight = alone if len(group) == 1 else together
            for role in group:
                self.weights[role] = max(weight, self.weights.get(role, 0))
                pairs |= {(role, other) for other in group if other != role or len(group) == 1}
        return pairs

    def pull(self, role: str, among: Mapping[str, int], *, only_away: bool = False) -> int:
        """How much a role is drawn to roles, less how much it is driven away."""
        drawn = 0 if only_away else sum(n for other, n in among.items() if (role, other) in self.attracted)
        return drawn - sum(n for other, n in among.items() if (role, other) in self.repelled)

    def rank(self, role: str) -> tuple[int, int]:
        """The users' order, then how much the role's topology matters; the higher first."""
        return self.order.get(role, 0), self.weights.get(role, 0)


def rules_of(job: Job) -> Rules | None:
    """None if a group says nothing, or names a role that there is not, or one twice."""
    annotations = job.group.annotations
    if not any(key in annotations for key in (_AFFINITY, _ANTI_AFFINITY, _ORDER)):
        return None
    attract, repel = (_groups(annotations.get(key)) for key in (_AFFINITY, _ANTI_AFFINITY))
    order = annotations[_ORDER].split(",") if _ORDER in annotations else []
    known = {task.role for task in job.tasks.values()}
    for group in [*attract, *repel, order]:
        named = [role for role in group if role]
        if len(set(named)) < len(named) or not known.issuperset(named):
            return None
    return Rules(attract, repel, order)


def _groups(text: str | None) -> list[list[str]]:
    return [] if text is None else [group.split(",") for group in text.split(";")]


class Bucket:
    """`waiting` are its tasks without a node, `bound` how many it has on which row."""

    __slots__ = ("bound", "place", "request", "roles", "score", "waiting")

    def __init__(self, place: int) -> None:
        self.place = place
        self.waiting: dict[str, Task] = {}
        self.bound: Counter[int] = Counter()
        self.roles: Counter[str] = Counter()
        self.request = Amounts()
        self.score = 0.0

    def add(self, task: Task) -> None:
        self.roles[task.role] += 1
        if task.row >= 0:
            self.bound[task.row] += 1
        else:
            self.wait(task)

    def wait(self, task: Task) -> None:
        self.waiting[task.uid] = task
        self.request.add(task.request)
        self.score += _size(task.request)

    def no_longer_waits(self, task: Task) -> None:
        self.waiting.pop(task.uid, None)
        self.request.subtract(task.request)
        self.score -= _size(task.request)

    def __len__(self) -> int:
        return len(self.waiting) + self.bound.total()


def _size(request: Amounts) -> float:
    """A thousandth of a cpu, a mebibyte and a thousandth of anything else are alike."""
    return request.cpu + request.memory / _MEBI + sum(request.scalars.values())


class JobBuckets:
    """The buckets of one job. `largest` is the size of the largest when the round began."""

    def __init__(self, rules: Rules, tasks: Iterable[Task], names: Mapping[int, str]) -> None:
        self.rules = rules
        self.of: dict[str, Bucket] = {}
        self.on_row: dict[int, Counter[str]] = {}
        """By row, how many tasks of which roles were placed there in this round."""
        self._buckets: list[Bucket] = []
        by_row: dict[int, Bucket] = {}
        for task in self._in_order(tasks, names):
            bucket = by_row.get(task.row) if task.row >= 0 else self._most_attractive(task)
            if bucket is None:
                bucket = Bucket(len(self._buckets))
                self._buckets.append(bucket)
                if task.row >= 0:
                    by_row[task.row] = bucket
            bucket.add(task)
            self.of[task.uid] = bucket
        self.largest = max((len(bucket) for bucket in self._buckets), default=0)

    def _in_order(self, tasks: Iterable[Task], names: Mapping[int, str]) -> list[Task]:
        """Those on nodes first, by node; then by rank and name."""
        ruled = [task for task in tasks if task.role in self.rules.weights]
        placed = sorted((task for task in ruled if task.row >= 0), key=lambda task: names[task.row])
        waiting = sorted((task for task in ruled if task.row < 0), key=lambda task: task.name)
        waiting.sort(key=lambda task: self.rules.rank(task.role), reverse=True)
        return placed + waiting

    def _most_attractive(self, task: Task) -> Bucket | None:
        """The bucket with the strongest pull, of equals the smaller; None if all drive it away."""
        pulls = [(self.rules.pull(task.role, bucket.roles), bucket) for bucket in self._buckets]
        strongest = max((pull for pull, _ in pulls), default=-1)
        if strongest < 0:
            return None
        return min((bucket for pull, bucket in pulls if pull == strongest), key=lambda bucket: bucket.score)
