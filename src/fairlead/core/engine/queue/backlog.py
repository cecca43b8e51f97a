"""Backlog: every pod or gang that waits for a node (kube-scheduler's SchedulingQueue), and what gives it the next
attempt.

               add                      pop                        bound, gone
      pod ────────────▶ active ───────────────────▶ in flight ──────────────────▶ (forgotten)
           │              ▲  ▲ ▲    pop, when idle      │ put_back
           │ gated        │  │ └──────── backoff ◀──────┤ an event of interest came meanwhile, or it was an error
           ▼              │  └ time is up  ▲            │
         parked ──────────┴────────────────┘            │ otherwise
           ▲  an event of interest, activate, or a long time
           └────────────────────────────────────────────┘

Invariant: a pod is in exactly one of active, backoff, parked and in flight. The queues know pods by namespace and name,
as the API does; pods in flight are known by uid, because a pod may be replaced by its namesake meanwhile. The members
of a gang have one entry together (core/engine/queue/gang_entries.py), whose key is the gang's.

Nothing here looks at a clock or writes a log: `now` is an argument, and counters and complaints are data for whatever
publishes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.core.engine.queue import standing
from fairlead.core.engine.queue.backoff import PodBackoff
from fairlead.core.engine.queue.entry import Entry, QueueName, Waiting
from fairlead.core.engine.queue.gang_entries import GangEntries
from fairlead.core.engine.queue.gates import Gates
from fairlead.core.engine.queue.gatewatch import GateWatch, Note
from fairlead.core.engine.queue.hints import Hints
from fairlead.core.engine.queue.inflight import InFlight
from fairlead.core.engine.queue.nominator import Nominator
from fairlead.core.engine.queue.queues import ActiveOrder, Queues
from fairlead.core.engine.queue.requeue import Requeue, Requeuing
from fairlead.core.engine.queue.sweeps import Sweeps
from fairlead.core.engine.queue.tallies import QueueTallies
from fairlead.core.engine.queue.transitions import Transitions
from fairlead.core.model.events import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_POD_UPDATE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
)
from fairlead.core.model.pod import Pod, pod_events

if TYPE_CHECKING:
    from fairlead.core.framework.plugin import Interest
    from fairlead.core.framework.profile import Profile
    from fairlead.core.state.cluster import Cluster

CONFIGURATION_CHANGE = ClusterEvent(FORCE_ACTIVATE.resource, FORCE_ACTIVATE.action, "ConfigurationChange")
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"
SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
REMEMBERED_COMPLAINTS = 1000
"""The latest complaints that are kept if nobody reads them."""
_QUEUE_NAMES = {QueueName.PARKED: "unschedulable", QueueName.ACTIVE: "the active", QueueName.BACKOFF: "the backoff"}
_BACKOFF, _IN_FLIGHT = QueueName.BACKOFF, QueueName.IN_FLIGHT
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""


class Backlog:
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        cluster: Cluster,
        *,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        unschedulable_limit: float = 300.0,
        pops_early: bool = True,
        extra_interests: Mapping[str, Sequence[Interest]] | None = None,
    ) -> None:
        """`pops_early`: an entry that a plugin refused is taken before its backoff ends when no entry is active."""
        self._cluster = cluster

        self._sweeps = Sweeps(unschedulable_limit)
        self._extra = extra_interests or {}
        self._arrivals = 0
        self.queues = Queues(ActiveOrder(profiles), PodBackoff(initial_backoff, max_backoff, pops_early))
        self.gangs = GangEntries(profiles, cluster)
        self.in_flight = InFlight()
        self.nominator = Nominator(self._seen, self._waiting_pod)
        self.cycle = 0
        """How many pods have been popped."""
        self.complaints: deque[str] = deque(maxlen=REMEMBERED_COMPLAINTS)
        """Problems for the log that did not stop anything. The reader removes them."""
        self.tallies = QueueTallies()
        self._gates = Gates(profiles, cluster, self.complaints)
        self._gate_watch = GateWatch()
        self._transitions = Transitions(self.queues, self._gates, self.nominator, self.tallies)
        self.requeuing = Requeuing(Hints(profiles, self._extra), self.tallies.hints_asked, self.complaints)

    def serves(self, scheduler_name: str) -> bool:
        """Whether pods of this name queue here one by one."""
        profile = self._gates.profiles.get(scheduler_name)
        return profile is not None and profile.mode is None

    # ---- pods come, change and go ----

    def add(self, pod: Pod, now: float) -> None:
        entry = self._entry_for(pod, now)
        if entry.gated and entry.gang is not None and len(entry.gang) < entry.gang.minimum:
            return  # the gang is still below its minimum
        self._transitions.to_active(entry, UNSCHEDULABLE_POD_ADD.label, now)
        if entry.gang is not None and not entry.gated:
            self.nominator.observe(pod)

    def update(self, old: Pod, new: Pod, now: float) -> None:
        """Take in a new version of a waiting pod. If it is parked, the plugins that refused it are asked whether the
        change helps; if it is in flight, they are when it comes back."""
        events = pod_events(old, new)
        if new.uid in self.in_flight:
            for event in events:
                self.in_flight.note(event, old, new)
            return
        if self.gangs.key(old) != self.gangs.key(new):
            self.delete(old, now)
            self.add(new, now)
            return
        entry = self.queues.get(self.gangs.key(new))
        if entry is not None and entry.gang is not None:
            self._member_changed(entry, events, old, new, now=now)
            return
        if entry is None or entry.pod.uid != new.uid:
            self.nominator.forget(old.uid)
            self._transitions.to_active(self._entry_for(new, now), UNSCHEDULABLE_POD_UPDATE.label, now)
            return
        self.queues.replace_pod(entry, new)
        self.nominator.observe(new)
        if entry.place is QueueName.PARKED:
            self._reconsider(entry, events, old, new, now=now)

    def _reconsider(self, entry: Entry, events: Iterable[ClusterEvent], old: Pod, new: Pod, *, now: float) -> None:
        for event in events:
            strategy = self.requeuing.judge(entry, event, old, new)
            if self._transitions.requeue(entry, strategy, event.label, now):
                return

    def delete(self, pod: Pod, now: float) -> None:
        self.nominator.forget(pod.uid)
        entry = self.queues.get(self.gangs.key(pod))
        if entry is not None and (entry.gang is None or not entry.gang.pending()):
            self._transitions.remove(entry)
        elif entry is not None:
            self._rearrange(entry, now)
        self.gangs.left(pod)

    def _entry_for(self, pod: Pod, now: float) -> Entry:
        """A new entry for a pod; the gang's entry if other members of its gang wait already."""
        gang = self.gangs.joined(pod)
        present = self.queues.get(gang.key) if gang is not None else None
        if present is not None:
            self.queues.replace_pod(present, self.gangs.first(present.pod, pod))
            return present
        self._arrivals += 1
        return Entry(pod, now, self._arrivals, gang=gang)

    # ---- gangs ----

    def gang_changed(self, key: str, now: float, *, group: bool = False) -> None:
        """Update a gang's entry after a change of a member's place or of the group: its order, and whether it is
        gated."""
        entry = self.queues.get(key)
        if entry is None:
            return
        if group or entry.gated:
            self._rearrange(entry, now)
        else:
            self.queues.reorder(entry)

    def members(self, entry: Entry) -> list[Pod]:
        """The members of a gang to try now: those that wait and are not gated, highest priority first."""
        assert entry.gang is not None
        waiting = [
            pod
            for pod in entry.gang.pending()
            if pod.uid not in self.in_flight and self.requeuing.hints.knows(pod.scheduler_name)
        ]
        return sorted([pod for pod in waiting if self._gates.refusal(pod) is None], key=lambda pod: -pod.priority)

    def _member_changed(self, entry: Entry, events: Sequence[ClusterEvent], old: Pod, new: Pod, *, now: float) -> None:
        self.nominator.observe(new)
        self._rearrange(entry, now)
        if entry.place is QueueName.PARKED and not entry.gated:
            self._reconsider(entry, events, old, new, now=now)

    def _rearrange(self, entry: Entry, now: float) -> None:
        """Choose anew the member that stands for the gang, and with it the entry's order and whether it is gated."""
        assert entry.gang is not None
        pod = self.gangs.face(entry.gang)
        if pod is None:
            return
        self.queues.replace_pod(entry, pod)
        if entry.gated:
            self._transitions.to_active(entry, UNSCHEDULABLE_POD_UPDATE.label, now)
        elif entry.place is not QueueName.PARKED and not self._transitions.admit(entry):
            self._transitions.park(entry, UNSCHEDULABLE_POD_UPDATE.label)

    # ---- attempts ----

    def has_active(self) -> bool:
        """Whether `pop` would return something."""
        self._settle()
        return self.queues.first() is not None

    def pop(self, now: float) -> Entry | None:
        """The next entry to try. When no entry is active, one that a plugin refused is taken before its backoff ends;
        one that came back with an error never is."""
        self._settle()
        while (entry := self.queues.first()) is not None:
            if entry.place is _BACKOFF:
                self.tallies.incoming[QueueName.ACTIVE.value, POP_FROM_BACKOFF] += 1
            if self._depart(entry):
                return entry
        return None

    def take(self, pod: Pod, now: float) -> Entry | None:
        """Take one particular pod out, whichever queue it waits in; None if it does not wait, or is gated."""
        self._activate(pod, now)
        entry = self.queues.get(self.gangs.key(pod))
        if entry is None or entry.place is not QueueName.ACTIVE or not self._depart(entry):
            return None
        return entry

    def take_past(self, pod: Pod, plugin: str, now: float) -> Entry | None:
        """Take one particular pod out, although the gate of a plugin may hold it: that plugin wants it tried. None
        if it does not wait, or is gated by another."""
        entry = self.queues.get(self.gangs.key(pod))
        if entry is None or entry.gang is not None or entry.pod.uid != pod.uid:
            return None
        if self._gates.refusal(entry.pod, but=plugin) is not None or not self._depart(entry):
            return None
        entry.gated_by = ""
        entry.first_attempt = now if entry.first_attempt is None else entry.first_attempt
        return entry

    def _depart(self, entry: Entry) -> bool:
        self._transitions.remove(entry)
        entry.attempts += 1
        if entry.uid in self.in_flight:
            self.complaints.append(f"the same pod is tracked in multiple places in the scheduler: {entry.key}")
            return False
        entry.place = _IN_FLIGHT
        self.in_flight.begin(entry)
        self.cycle += 1
        entry.cycle = self.cycle
        return True

    def done(self, uid: str) -> None:
        """End a pod's attempt, whatever the result. Calling it twice does no harm."""
        self.in_flight.end(uid)

    def put_back(self, entry: Entry, now: float) -> None:
        """Queue an entry again after a failed attempt. It is parked, unless nobody is to blame (an error) or an event
        during the attempt may help the plugins to blame."""
        departed = entry.uid
        entry = self._as_gang(entry)
        present = self.queues.get(entry.key)
        if present is not None:
            self.complaints.append(f"Pod {entry.key} is already present in {_QUEUE_NAMES[present.place]} queue")
        elif self.serves(entry.pod.scheduler_name) and (entry.gang is None or entry.gang.pending()):
            entry.count_failure(now)
            self._transitions.count_blame(entry)
            strategy = self.requeuing.judge_all(entry, self.in_flight.since(departed))
            self._transitions.requeue(entry, strategy, SCHEDULE_ATTEMPT_FAILURE, now)
        self.done(departed)

    def _as_gang(self, entry: Entry) -> Entry:
        """The entry of the gang, for a member that comes back from a failed binding while others of its gang wait."""
        gang = None if entry.gang is not None else self.gangs.joined(entry.pod)
        if gang is None:
            return entry
        present = self.queues.get(gang.key)
        if present is not None:
            self._transitions.remove(present)
        return entry.with_gang(gang, present)

    # ---- what wakes parked pods ----

    def move(
        self,
        event: ClusterEvent,
        old: object,
        new: object,
        now: float,
        *,
        only: Callable[[Entry], bool] | None = None,
    ) -> int:
        """Wake the parked entries that an event may help; returns how many left the unschedulable queue. `only`
        restricts it to some entries."""
        if not self.queues.parked and not self.in_flight:
            return 0
        if event.is_wildcard:
            candidates = list(self.queues.parked)
        else:
            plugins = self.requeuing.hints.listeners(event).plugins
            if not plugins:
                return 0
            candidates = self.queues.parked.blaming(plugins)
            if self.queues.parked.gates_any(plugins):
                self._gate_watch.note(Note(event, old, new, only), now)
        if only is not None:
            candidates = [entry for entry in candidates if only(entry)]
        return self._move(candidates, event, old, new, now=now)

    def _move(self, entries: Iterable[Entry], event: ClusterEvent, old: object, new: object, *, now: float) -> int:
        moved = 0
        for entry in entries:
            strategy = self.requeuing.judge(entry, event, old, new)
            if strategy is not Requeue.SKIP:
                self.queues.remove(entry)
                moved += self._transitions.requeue(entry, strategy, event.label, now)
        self.in_flight.note(event, old, new)
        return moved

    def _settle(self) -> None:
        """Requeue the gated entries whose gate has opened. A gated entry is woken only by events that its gate listens
        to."""
        if self._gate_watch:
            now = self._gate_watch.noted_at
            watch = self._gate_watch.opened(self.queues.parked, self._gates, self.requeuing.hints, self.requeuing)
            for entry, strategy, label in watch:
                self.queues.remove(entry)
                self._transitions.requeue(entry, strategy, label, now)

    def activate(self, pods: Iterable[Pod], now: float) -> None:
        """Make pods active at once. A gated pod stays gated; one in flight is active when it comes back."""
        for pod in pods:
            if not self._activate(pod, now) and pod.uid in self.in_flight:
                self.in_flight.note(FORCE_ACTIVATE, None, pod)

    def _activate(self, pod: Pod, now: float) -> bool:
        entry = self.queues.get(self.gangs.key(pod))
        if entry is None or entry.place is QueueName.ACTIVE:
            return False
        admitted = entry.place is QueueName.BACKOFF and self.queues.backoff.backoff.early
        return self._transitions.to_active(entry, FORCE_ACTIVATE.label, now, admitted=admitted)

    # ---- time passes ----

    def flush(self, now: float) -> None:
        """Move on the entries whose backoff is over or that have been parked for too long."""
        self._settle()
        for entry in self.queues.backoff.due(now):
            self._transitions.to_active(entry, BACKOFF_COMPLETE, now, admitted=self.queues.backoff.backoff.early)
        cutoff = self._sweeps.cutoff(now)
        overdue = self.queues.parked.parked_before(cutoff) if cutoff is not None else []
        for entry in overdue:
            entry.flushed_at = now
        if overdue:
            self._move(overdue, UNSCHEDULABLE_TIMEOUT, None, None, now=now)

    def wake_at(self, now: float) -> float | None:
        """The next moment at which there is something to do: now if `pop` would return an entry, else when `flush`
        would move one; None if neither."""
        self._settle()
        if not self.queues:
            return None
        if self.queues.first() is not None:
            return now
        moments = [self.queues.backoff.next_due()]
        if (oldest := self.queues.parked.oldest()) is not None:
            moments.append(self._sweeps.of(oldest, now))
        return min((max(now, moment) for moment in moments if moment is not None), default=None)

    def reconfigure(
        self,
        profiles: Mapping[str, Profile],
        now: float,
        *,
        initial_backoff: float | None = None,
        max_backoff: float | None = None,
        unschedulable_limit: float | None = None,
        extra_interests: Mapping[str, Sequence[Interest]] | None = None,
    ) -> None:
        """Go on with other profiles and the same pods; a setting that is None stays as it is. All entries are gated and
        ordered by the new profiles, and parked ones are tried again, because the new plugins may not refuse them.
        Entries whose profile is gone leave; `add` brings their pods again when it is back."""
        self.queues.backoff.reconfigure(initial_backoff, max_backoff)
        if unschedulable_limit is not None:
            self._sweeps.reconfigure(unschedulable_limit)
        self._extra = self._extra if extra_interests is None else extra_interests
        self.queues.order.reconfigure(profiles)
        self.gangs.reconfigure(profiles)
        self.requeuing.reconfigure(Hints(profiles, self._extra))
        self._gates.reconfigure(profiles)
        for entry in sorted(self.queues, key=lambda entry: entry.serial):
            if not self.serves(entry.pod.scheduler_name):
                self._leave(entry)
            elif entry.place is QueueName.PARKED or not self._transitions.admit(entry):
                self._transitions.park(entry, CONFIGURATION_CHANGE.label)
            else:
                self.queues.reorder(entry)
        self.move(CONFIGURATION_CHANGE, None, None, now)

    def _leave(self, entry: Entry) -> None:
        for pod in [entry.pod] if entry.gang is None else entry.gang.pending():
            self.nominator.forget(pod.uid)
            self.gangs.left(pod)
        self._transitions.remove(entry)

    # ---- reading ----

    def where(self, uid: str) -> Waiting | None:
        """Where a pod waits and for what; None if it does not wait."""
        self._settle()
        if (flying := self.in_flight.get(uid)) is not None:
            return standing.in_flight(flying)
        pod_state = self._cluster.pods.get(uid)
        entry = self.queues.by_uid(uid) or (
            self.queues.get(self.gangs.key(pod_state.seen)) if pod_state is not None else None
        )
        if entry is None or not entry.stands_for(uid):
            return None
        return standing.in_queue(entry, self.queues.backoff.backoff, self.requeuing.hints, self._sweeps)

    def counts(self) -> dict[str, int]:
        """How many pods wait in which queue: the gauge `pending_pods`."""
        self._settle()
        return self.queues.counts()

    def check(self) -> None:
        """Check the invariants by recounting; raises AssertionError."""
        self.queues.check()
        assert not any(entry.uid in self.in_flight for entry in self.queues), "a pod in flight waits in a queue"
        self._transitions.check()

    def _seen(self, uid: str) -> Pod | None:
        pod_state = self._cluster.pods.get(uid)
        return None if pod_state is None else pod_state.seen

    def _waiting_pod(self, key: str) -> Pod | None:
        entry = self.queues.get(key)
        uid = self.gangs.waiting(key) if entry is None else None
        return entry.pod if entry is not None else self._seen(uid) if uid and uid not in self.in_flight else None
