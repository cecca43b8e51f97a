"""WriteQueue: what waits to be sent to the API, most urgent first. Pure data: who sends and when is a writer's.

Writes are of four classes. Each has slots of its own, so that none can keep another waiting: a bind never stands behind
six hundred status patches. Only events give way, while more binds wait than can be on their way. Two writes to one
object keep their order. Of statuses only the newest is kept: a patch that was not sent yet takes in the next one for
the same object, and a pod's bind makes a patch that is still waiting pointless, as in kube-scheduler's dispatcher of
API calls.

    submit ─▶ lane of the object ─▶ ready, by class ─▶ take ─▶ (on its way) ─▶ done ─▶ the lane's next

How many statuses may be on their way follows the API's answers: fewer when it is slow or refuses, one more after each
quick answer. Kubernetes' own clients have a fixed number; that many slow requests are what keeps a slow API slow.

Invariant: every Write submitted is in exactly one of: waiting, on its way, answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from fairlead.core.model import kinds
from fairlead.core.model.flow import PatchType, Reply, Verb, Write
from fairlead.errors import NotSent, TooManyRequests, Unreachable
from fairlead.runtime.known_state import is_status_patch, without_times

if TYPE_CHECKING:
    from fairlead.core.model.kinds import Kind
    from fairlead.errors import ApiError

_Key = tuple["Kind", str, str]

MOST_EVENTS = 5000
"""Events that may wait, some 15 MB of them. A burst of pods is bound faster than its events are written, and
`kubectl describe` shall show each pod's; what an API that stays slow cannot take is dropped, as client-go does."""
_SLOW_FACTOR, _SLOW_SECONDS = 5.0, 0.1
"""An answer is slow when it takes this many times as long as the quickest lately, and this much longer."""


class WriteClass(IntEnum):
    """How urgent a write is; the lowest number goes first."""

    BIND = 0
    EVICTION = 1
    STATUS = 2
    EVENT = 3


_RANKS = {True: (WriteClass.EVENT,), False: (WriteClass.BIND, WriteClass.EVICTION, WriteClass.STATUS)}
_PREBIND_KINDS = frozenset({kinds.PERSISTENT_VOLUME, kinds.PERSISTENT_VOLUME_CLAIM})


def class_of(write: Write) -> WriteClass:
    """Bindings and the claims that they need; deletions; events; everything else is a status."""
    if write.subresource == "binding" or write.kind.storage in _PREBIND_KINDS:
        return WriteClass.BIND
    if write.verb is Verb.DELETE or write.subresource == "eviction":
        return WriteClass.EVICTION
    return WriteClass.EVENT if write.kind.storage is kinds.EVENT_V1.storage else WriteClass.STATUS


@dataclass(slots=True, eq=False)
class Queued:
    """One request to come: the write to send, and the writes that were `asked` for and get its answer."""

    write: Write
    rank: WriteClass
    since: float
    asked: list[Write]
    lane: _Lane

    def replies(self, doc: Any, error: ApiError | None) -> list[Reply]:
        return [Reply(write, doc, error) for write in self.asked]


@dataclass(slots=True, eq=False)
class _Lane:
    """The writes to one object, in their order. Its rank is that of the most urgent among them."""

    key: _Key
    waiting: deque[Queued] = field(default_factory=deque)
    rank: WriteClass = WriteClass.EVENT
    current: Queued | None = None
    """What is on its way."""
    lined_up: bool = False

    @property
    def busy(self) -> bool:
        return self.current is not None


class AdaptiveLimit:
    """How many requests may be on their way: halved (at most once per answer time) when the API is slow or refuses,
    one more per `value` quick answers."""

    def __init__(self, most: int, least: int) -> None:
        self.value = float(most)
        self._most, self._least = float(most), float(min(most, least))
        self._quickest: float | None = None
        self._lowered_at = float("-inf")

    def answered(self, now: float, seconds: float, error: ApiError | None) -> None:
        refused = isinstance(error, TooManyRequests | Unreachable)
        if not refused:
            # Forgets by a hundredth with each answer, so that an API that became slow for good is its own measure.
            before = seconds if self._quickest is None else self._quickest * 1.01
            self._quickest = min(before, seconds)
        quickest = self._quickest or 0.0
        if refused or seconds > max(quickest * _SLOW_FACTOR, quickest + _SLOW_SECONDS):
            if now - self._lowered_at >= seconds:
                self.value = max(self._least, self.value / 2)
                self._lowered_at = now
        else:
            self.value = min(self._most, self.value + 1 / self.value)


@dataclass(frozen=True, slots=True)
class WriteFigures:
    """What waits, is on its way and is the oldest in seconds, by class."""

    waiting: Mapping[WriteClass, int]
    on_the_way: Mapping[WriteClass, int]
    oldest: Mapping[WriteClass, float]


def sum_of(figures: Sequence[WriteFigures]) -> WriteFigures:
    """Several queues as one."""
    return WriteFigures(
        {rank: sum(one.waiting.get(rank, 0) for one in figures) for rank in WriteClass},
        {rank: sum(one.on_the_way.get(rank, 0) for one in figures) for rank in WriteClass},
        {rank: max((one.oldest.get(rank, 0.0) for one in figures), default=0.0) for rank in WriteClass},
    )


class WriteQueue:
    def __init__(self, in_flight: int = 64) -> None:
        """`in_flight` requests at a time in all, shared among the classes."""
        self._slots = dict(zip(WriteClass, _shares(in_flight), strict=True))
        self.statuses = AdaptiveLimit(self._slots[WriteClass.STATUS], 4)
        self._lanes: dict[_Key, _Lane] = {}
        self._ready: dict[WriteClass, deque[_Lane]] = {rank: deque() for rank in WriteClass}
        self._on_the_way = dict.fromkeys(WriteClass, 0)
        self._waiting = dict.fromkeys(WriteClass, 0)

    def __len__(self) -> int:
        """Requests that wait or are on their way."""
        return sum(self._waiting.values()) + sum(self._on_the_way.values())

    # ---- in ----

    def submit(self, writes: Sequence[Write], now: float) -> list[Reply]:
        """Queue these. The answer are replies to writes that will never be sent."""
        unsent: list[Reply] = []
        for write in writes:
            if replies := self._add(write, class_of(write), now):
                unsent += replies
        return unsent

    def _add(self, write: Write, rank: WriteClass, now: float) -> Sequence[Reply]:
        if rank is WriteClass.EVENT and self._waiting[rank] >= MOST_EVENTS:
            return [Reply(write, None, NotSent(f"{MOST_EVENTS} events wait already"))]
        key = (write.kind.storage, write.namespace, write.name or f"?{id(write)}")
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(key)
        unsent: Sequence[Reply] = ()
        if write.subresource == "binding":
            if lane.waiting:
                unsent = self._drop_statuses(lane)
        elif rank is WriteClass.STATUS and self._merge(lane, write):
            return ()
        lane.waiting.append(Queued(write, rank, now, [write], lane))
        self._waiting[rank] += 1
        self._line_up(lane)
        return unsent

    def _drop_statuses(self, lane: _Lane) -> list[Reply]:
        """The pod has a node now: that it had none need not be said any more."""
        dropped = [queued for queued in lane.waiting if _is_pod_status(queued.write)]
        if not dropped:
            return []
        for queued in dropped:
            lane.waiting.remove(queued)
            self._waiting[queued.rank] -= 1
        error = NotSent("the pod is being bound")
        return [reply for queued in dropped for reply in queued.replies(None, error)]

    def _merge(self, lane: _Lane, write: Write) -> bool:
        """Whether a write needs no request of its own: it joins one that waits, or says what is just being said."""
        last = lane.waiting[-1] if lane.waiting else None
        if last is None and lane.current is not None and _says_the_same(lane.current.write, write):
            lane.current.asked.append(write)
            return True
        merged = None if last is None else merged_patch(last.write, write)
        if last is None or merged is None:
            return False
        last.asked.append(write)
        last.write = merged
        return True

    def _line_up(self, lane: _Lane) -> None:
        if lane.busy or not lane.waiting:
            return
        rank = lane.waiting[0].rank if len(lane.waiting) == 1 else min(queued.rank for queued in lane.waiting)
        if not lane.lined_up or rank is not lane.rank:
            lane.rank, lane.lined_up = rank, True
            self._ready[rank].append(lane)

    # ---- out ----

    def sendable(self, *, events: bool) -> int:
        """How many writes could be sent now, of events or of everything else: so many wait, and slots are free."""
        count = 0
        for rank in _RANKS[events]:
            if ready := self._ready[rank]:
                count += max(0, min(len(ready), int(self._limit(rank)) - self._on_the_way[rank]))
        return count

    @property
    def events_wait(self) -> bool:
        """Whether an event is ready to be sent, if a slot is free."""
        return bool(self._ready[WriteClass.EVENT])

    def take(self, *, events: bool = False) -> Queued | None:
        """The next to send, of events or of everything else; None if nothing waits or no slot is free."""
        for rank in _RANKS[events]:
            if self._ready[rank] and self._on_the_way[rank] < int(self._limit(rank)) and self._clear_stale(rank):
                lane = self._ready[rank].popleft()
                lane.current = queued = lane.waiting.popleft()
                lane.lined_up = False
                self._waiting[queued.rank] -= 1
                self._on_the_way[rank] += 1
                return queued
        return None

    def _limit(self, rank: WriteClass) -> float:
        """Requests of a class that may be on their way. While more binds wait than can be on their way, the API has
        enough to do, so most events wait too."""
        if rank is WriteClass.STATUS:
            return self.statuses.value
        slots, binds = self._slots[rank], WriteClass.BIND
        backlog = rank is WriteClass.EVENT and len(self._ready[binds]) > self._slots[binds]
        return max(1, slots // 4) if backlog else slots

    def _clear_stale(self, rank: WriteClass) -> bool:
        """Whether a lane is ready in this class; lanes that were lined up elsewhere since are skipped."""
        ready = self._ready[rank]
        while ready:
            lane = ready[0]
            if not lane.busy and lane.rank is rank and lane.waiting and self._lanes.get(lane.key) is lane:
                return True
            ready.popleft()
        return False

    def done(self, queued: Queued, now: float, seconds: float, error: ApiError | None, *, sent: bool = True) -> None:
        """It was answered after so many seconds, or need not be `sent`. The next write to its object may go."""
        lane = queued.lane
        if self._lanes.get(lane.key) is not lane:
            return  # given up meanwhile
        self._on_the_way[lane.rank] -= 1
        if lane.rank is WriteClass.STATUS and sent:
            self.statuses.answered(now, seconds, error)
        lane.current = None
        if lane.waiting:
            self._line_up(lane)
        else:
            del self._lanes[lane.key]

    def give_up(self) -> int:
        """Forget everything; says how many writes had no answer."""
        left = len(self)
        self._lanes.clear()
        for rank in WriteClass:
            self._ready[rank].clear()
            self._waiting[rank] = self._on_the_way[rank] = 0
        return left

    def figures(self, now: float) -> WriteFigures:
        oldest = dict.fromkeys(WriteClass, 0.0)
        for queued in self._all():
            oldest[queued.rank] = max(oldest[queued.rank], now - queued.since)
        return WriteFigures(dict(self._waiting), dict(self._on_the_way), oldest)

    def _all(self) -> Iterator[Queued]:
        return (queued for lane in list(self._lanes.values()) for queued in list(lane.waiting))


def _shares(in_flight: int) -> tuple[int, int, int, int]:
    """Slots for binds, evictions, statuses and events. Most are the binds': they are what is waited for."""
    evictions, quarter = max(1, in_flight // 8), max(1, in_flight // 4)
    return max(1, in_flight - evictions - 2 * quarter), evictions, quarter, quarter


def _is_pod_status(write: Write) -> bool:
    return write.verb is Verb.PATCH and write.subresource == "status" and write.kind is kinds.POD


def merged_patch(old: Write, new: Write) -> Write | None:
    """One patch that does what these two would, one after the other; None if there is no such patch."""
    alike = (
        old.verb is new.verb is Verb.PATCH
        and old.kind is new.kind
        and (old.subresource, old.patch_type, old.params) == (new.subresource, new.patch_type, new.params)
    )
    if not alike or not is_status_patch(old) or not is_status_patch(new):
        return None
    if old.body.get("metadata") != new.body.get("metadata"):
        return None
    by_type = new.patch_type is PatchType.STRATEGIC
    return Write(
        new.verb,
        new.kind,
        new.namespace,
        new.name,
        _merged(old.body, new.body, by_type=by_type),
        subresource=new.subresource,
        patch_type=new.patch_type,
        params=new.params,
        note=new.note,
    )


def _says_the_same(old: Write, new: Write) -> bool:
    """Whether two patches differ in nothing but the moment at which they were made."""
    if merged_patch(old, new) is None:
        return False
    return bool(without_times(old.body) == without_times(new.body))


def _merged(old: Mapping[str, Any], new: Mapping[str, Any], *, by_type: bool) -> dict[str, Any]:
    merged = dict(old)
    for name, value in new.items():
        before = merged.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            merged[name] = _merged(before, value, by_type=by_type)
        elif by_type and name == "conditions" and isinstance(before, list):
            conditions = {condition["type"]: condition for condition in before}
            for condition in value:
                conditions[condition["type"]] = {**conditions.get(condition["type"], {}), **condition}
            merged[name] = list(conditions.values())
        else:
            merged[name] = value
    return merged
