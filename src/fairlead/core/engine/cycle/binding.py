"""Binding: one placement on its way to the API (kube-scheduler's binding cycle).

PreBindPreFlight comes first: which PreBind plugins will have something to do. Then WaitOnPermit, PreBind, Bind:

    WAITING ──all allowed──▶ PREPARING ──errands done──▶ BINDING ──the API agreed──▶ ENDED (status is None)
       │ refused, timed out      │ an errand failed         │ refused
       └─────────────────────────┴──────────────────────────┴──────────────────────▶ ENDED (status says why)
                                                                                       │ a gang keeps the place
                                                                       tried again ◀── HELD

A Binding never blocks: it is advanced when replies or changes came in, and `wake_at` says when it wants to be advanced
next. Meanwhile the pod is ASSUMED and the next pods are placed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from fairlead.core.framework.calls import call_plugin
from fairlead.core.framework.plugin import Errand, Plugin, ReplyErrand, takes_part
from fairlead.core.framework.points import waited_too_long
from fairlead.core.model.durations import format_duration
from fairlead.core.model.flow import Write
from fairlead.core.model.reasons import SUCCESS, Code, Status, failed, unschedulable
from fairlead.errors import ApiError, Conflict, InternalError, Unreachable

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.placement import Placed
    from fairlead.core.engine.modes import Placer
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.extender import Extender
    from fairlead.core.framework.points import Permission
    from fairlead.core.model.flow import Reply
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster


FIRST_RESEND, LAST_RESEND = 0.5, 10.0
"""Seconds until a bind without an answer is sent again: at first, and at most."""
GANG_PATIENCE = 60.0
"""For how many seconds a round's placement of a gang member is kept while the API server fails to bind it."""


class BindingStage(Enum):
    WAITING = "waiting on permit"
    PREPARING = "pre_bind"
    BINDING = "bind"
    ENDED = "ended"
    HELD = "held"


_WAITING, _PREPARING, _BINDING, _ENDED, _HELD = BindingStage
"""Looking one up on the Enum takes ten times as long before Python 3.12."""


class OneWrite:
    """An errand that is a single write: done when the API agrees."""

    def __init__(self, write: Write, failure: str) -> None:
        self._write = write
        self._failure = failure

    def start(self, now: float) -> list[Write]:
        return [self._write]

    def progress(self, now: float, cluster: Cluster, replies: Sequence[Reply]) -> Status | None:
        for reply in replies:
            if reply.write is self._write:
                return SUCCESS if reply.error is None else failed(f"{self._failure}: {reply.error.message}")
        return None

    def wake_at(self) -> float | None:
        return None


class BindWrite(OneWrite):
    """A bind, which is sent again while nobody knows whether the last one arrived. The API server binds a pod once: if
    the lost one had arrived it says so, and if not, the pod is bound now. Giving up the place instead, as
    kube-scheduler does, would promise it to a second pod. A bind at which the API server failed is sent again once, or
    until `patience_until`; after a lost answer it is sent until there is one."""

    _sent_again = 0
    _is_lost = False
    _again_at: float | None = None

    def __init__(self, write: Write, failure: str, row: int, node_name: str, patience_until: float) -> None:
        self._write, self._failure = write, failure
        self._row, self._node_name = row, node_name
        self._patience_until = patience_until

    def progress(self, now: float, cluster: Cluster, replies: Sequence[Reply]) -> Status | None:
        answer = None
        for reply in replies:
            if reply.write is self._write:
                answer = reply
        if answer is None:
            if self._again_at is not None and not cluster.table.alive[self._row]:
                return failed(f"{self._failure}: the node is gone")
            return None
        error = answer.error
        if error is None:
            return SUCCESS
        if self._sent_again and isinstance(error, Conflict) and self._is_assigned_by(error.message):
            return SUCCESS
        if not self._is_worth_another(error, now):
            return super().progress(now, cluster, replies)
        self._again_at = now + min(LAST_RESEND, FIRST_RESEND * 2 ** min(self._sent_again, 10))
        self._sent_again += 1
        return None

    def _is_assigned_by(self, message: str) -> bool:
        """Whether the API server says that an earlier bind, of which no answer came, had arrived."""
        return f'already assigned to node "{self._node_name}"' in message

    def _is_worth_another(self, error: ApiError, now: float) -> bool:
        if isinstance(error, Unreachable):
            self._is_lost = True
        patient = self._is_lost or not self._sent_again or now < self._patience_until
        return isinstance(error, Unreachable | InternalError) and patient

    def again(self, now: float) -> list[Write]:
        """The same bind once more, if it is time."""
        if self._again_at is None or now < self._again_at:
            return []
        self._again_at = None
        return [self._write]

    def wake_at(self) -> float | None:
        return self._again_at


class Ending(NamedTuple):
    """How a binding ended that did not bind its pod."""

    status: Status | None = None
    preempted: bool = False
    keeps_nomination: bool = False
    """Whether the pod stays nominated to its node if its permission is refused."""
    together: frozenset[str] = frozenset()
    """Other pods for which it is no news that the place is given up: they were tried with this one."""


_NOT_ENDED = Ending()


class _Calls:
    """Which plugins a binding has to call at PreBind, whose errands are under way, and how many binders have been
    called: extenders first, then plugins."""

    __slots__ = ("_binders", "plugin_of", "pre_binders")

    def __init__(self) -> None:
        self.pre_binders: list[Plugin] = []
        self.plugin_of: dict[int, str] = {}
        self._binders = 0

    def not_called(self, binders: Sequence[Extender | Plugin]) -> Iterator[Extender | Plugin]:
        """The binders that have not been called; each counts as called when it comes."""
        for binder in binders[self._binders :]:
            self._binders += 1
            yield binder


class Binding:
    ending = _NOT_ENDED
    past_permit = False
    announced = ""
    """The node to which the pod was reported as nominated while it waits."""
    retry_at: float | None = None

    def __init__(
        self, entry: Entry, cycle: Cycle, placed: Placed, permission: Permission, placer: Placer, *, now: float
    ) -> None:
        self.placer = placer
        """The mode that placed the pod. It is notified of what becomes of the binding."""
        self.entry = entry
        self.cycle = cycle
        self.placed = placed
        self.node_name = cycle.cluster.table.name(placed.row)
        self.stage = _WAITING
        self.started = now
        self.binds_since = now
        """When PreBind was done and Bind began."""
        self.waiting_for: dict[str, tuple[float, float]] = {}
        """By plugin whose Permit waits: the moment at which the wait times out, and its length in seconds."""
        for plugin, timeout in permission.waits:
            self.waiting_for[plugin] = (now + timeout, timeout)
        self._calls = _Calls()
        self._errands: list[Errand] = []

    @property
    def row(self) -> int:
        return self.placed.row

    @property
    def status(self) -> Status | None:
        """Why it ended; None while it has not, and if the pod is bound."""
        return self.ending.status

    @property
    def pod(self) -> Pod:
        return self.entry.pod

    # ---- Permit: what others may say of a waiting pod ----

    def allow(self, plugin: str) -> None:
        self.waiting_for.pop(plugin, None)

    def reject(
        self, plugin: str, message: str, *, keeps_nomination: bool = False, together: frozenset[str] = frozenset()
    ) -> bool:
        """Refuse a pod that waits for permission; False if it does not wait."""
        if self.stage is not _HELD and (self.stage is not _WAITING or not self.waiting_for):
            return False
        together |= self.ending.together
        self.ending = self.ending._replace(keeps_nomination=keeps_nomination, together=together)
        self._end(unschedulable(message).by(plugin))
        return True

    def preempt(self) -> bool:
        """End the binding of a preempted pod that is still in Permit or PreBind; False if it is past them. It is tried
        again after a backoff."""
        if self.stage in (_WAITING, _HELD):
            self._end(failed("preempted"))
        elif self.stage is _PREPARING:
            self._end(failed("preempted by DefaultPreemption"))
        else:
            return False
        self.ending = self.ending._replace(preempted=True)
        return True

    # ---- a place that is kept after a failure ----

    def hold(self, until: float) -> None:
        """Keep the place after a failed bind; it is tried again at `until`."""
        self.stage, self.retry_at = _HELD, until

    def give_up(self, status: Status) -> None:
        self.past_permit = False
        self._end(status)

    # ---- going on ----

    def open(self) -> bool:
        """PreBindPreFlight. Returns whether the pod is worth a nomination: it waits for permission, or a plugin has
        work to do at PreBind."""
        works = False
        for plugin in self.cycle.profile.at("pre_bind"):
            if plugin.idle_if_skipped and plugin.name in self.cycle.no_filter:
                continue
            if takes_part(plugin, "pre_bind_pre_flight"):
                said: Status | None = call_plugin(plugin, "pre_bind_pre_flight", self.cycle, self.row)
                if said is not None and said.code is Code.SKIP:
                    continue
                if said is not None and not said.ok:
                    self._end(_failed_pre_flight(plugin.name, said))
                    return False
                works = works or said is not None
            self._calls.pre_binders.append(plugin)
        return works or bool(self.waiting_for)

    def note_condition(self, node_name: str) -> None:
        """The condition that was written for the pod names this node as its nomination."""
        self.announced = node_name

    def advance(self, now: float, replies: Sequence[Reply] = ()) -> list[Write]:
        """Go on as far as possible; returns the writes."""
        writes: list[Write] = []
        if self.stage is _WAITING:
            if self.waiting_for:
                self._check_permit(now)
            if self.stage is _WAITING and not self.waiting_for:
                self.past_permit = True
                self.stage = _PREPARING
                if self._calls.pre_binders:
                    writes += self._pre_bind(now)
        if self.stage is _PREPARING:
            if self._errands:
                writes += self._progress(now, replies, "PreBind")
            if self.stage is _PREPARING and not self._errands:
                self.stage, self.binds_since = _BINDING, now
                writes += self._bind_by_next(now)
                if self._errands and isinstance(self._errands[-1], BindWrite):
                    return writes  # the bind is among them, so nobody has answered it yet
                replies = ()
        if self.stage is _BINDING:
            writes += self._progress(now, replies, "Bind")
            if self.stage is _BINDING and not self._errands:
                self.stage = _ENDED
        return writes

    def _pre_bind(self, now: float) -> list[Write]:
        """PreBind: the first failure ends the binding; otherwise all errands start, at once."""
        for plugin in self._calls.pre_binders:
            answer: Errand | Status | None = call_plugin(plugin, "pre_bind", self.cycle, self.row)
            if isinstance(answer, Status):
                if not answer.ok and answer.code is not Code.SKIP:
                    self._end(_wrapped("PreBind", plugin.name, answer))
                    return []
            elif answer is not None:
                self._errands.append(answer)
                self._calls.plugin_of[id(answer)] = plugin.name
        return [write for errand in self._errands for write in errand.start(now)]

    @property
    def waits_for_replies(self) -> bool:
        """Whether nothing but answers of the API takes its errands further."""
        for errand in self._errands:
            if not isinstance(errand, ReplyErrand) or not errand.waits_for_replies():
                return False
        return bool(self._errands)

    def wake_at(self) -> float | None:
        if self.stage is _HELD:
            return self.retry_at
        earliest = None
        for errand in self._errands:
            if (at := errand.wake_at()) is not None and (earliest is None or at < earliest):
                earliest = at
        if self.stage is _WAITING:
            for until, _ in self.waiting_for.values():
                earliest = until if earliest is None else min(earliest, until)
        return earliest

    def _check_permit(self, now: float) -> None:
        for plugin, (until, timeout) in self.waiting_for.items():
            if now >= until:
                self._end(waited_too_long(plugin, format_duration(timeout)))
                return

    def _progress(self, now: float, replies: Sequence[Reply], point: str) -> list[Write]:
        writes: list[Write] = []
        for errand in tuple(self._errands):
            status = errand.progress(now, self.cycle.cluster, replies)
            if status is None:
                writes += errand.again(now) if isinstance(errand, BindWrite) else ()
                continue
            if isinstance(status, list):
                writes += status
                continue
            self._errands.remove(errand)
            if status.code is Code.SKIP and self.stage is _BINDING:
                writes += self._bind_by_next(now)
            elif not status.ok:
                self._end(_wrapped(point, self._calls.plugin_of[id(errand)], status))
                break
        return writes

    def _bind_by_next(self, now: float) -> list[Write]:
        """Call the next binder: interested extenders that bind, then Bind plugins, each if those before skipped."""
        profile, cycle = self.cycle.profile, self.cycle
        binders: tuple[Extender | Plugin, ...] = (*profile.extenders, *profile.at("bind"))
        for binder in self._calls.not_called(binders):
            name, answer = "", None
            if isinstance(binder, Plugin):
                name, answer = binder.name, call_plugin(binder, "bind", cycle, self.row)
            elif binder.binds and binder.interested(self.pod):
                answer = binder.bind(cycle, self.row)
            else:
                continue
            if isinstance(answer, Status):
                if answer.code is Code.SKIP:
                    continue
                self._end(_wrapped("Bind", name, answer))
                return []
            if isinstance(answer, Write):
                until = now + GANG_PATIENCE if profile.mode is not None and self._is_of_a_gang() else now
                answer = BindWrite(answer, "binding rejected", self.row, self.node_name, until)
            return self._take_on(answer, name, now)
        self._end(failed("no Bind plugin took the pod"))
        return []

    def _is_of_a_gang(self) -> bool:
        """Whether others count on the pod. If its place went to somebody else they might wait for it for good, because
        rounds do not prefer gangs that are half bound."""
        gang = self.cycle.cluster.gangs.of(self.pod)
        return gang is not None and len(gang.members) > 1

    def _take_on(self, errand: Errand, name: str, now: float) -> list[Write]:
        self._errands.append(errand)
        self._calls.plugin_of[id(errand)] = name
        return errand.start(now)

    def _end(self, status: Status) -> None:
        self.stage = _ENDED
        self.ending = self.ending._replace(status=status)
        self._errands.clear()


def _wrapped(point: str, plugin: str, status: Status) -> Status:
    """A refusal as it is; any other status as an error that names the point and the plugin. (Errors of extenders name
    the extender already.)"""
    if status.code.rejected:
        return status.by(plugin)
    if not plugin:
        return status
    return failed(f'running {point} plugin "{plugin}": {status.message}')


def _failed_pre_flight(plugin: str, status: Status) -> Status:
    """PreBindPreFlight cannot refuse a pod: any answer but Success and Skip is an error, in kube-scheduler's words."""
    if status.code is Code.ERROR:
        return failed(f'running PreBindPreFlight "{plugin}": {status.message}')
    unsupported = f'PreBindPreFlight {plugin} returned "{status.code.label}", which is unsupported.'
    return failed(f"{unsupported} It is supposed to return Success, Skip, or Error status")


def call_post_bind(cycle: Cycle, row: int) -> None:
    """PostBind: call the plugins whose pod is bound, all of them; what the first raised is raised after that."""
    raised: Exception | None = None
    for plugin in cycle.profile.at("post_bind"):
        if takes_part(plugin, "post_bind"):
            try:
                call_plugin(plugin, "post_bind", cycle, row)
            except Exception as error:
                raised = raised or error
    if raised is not None:
        raise raised
