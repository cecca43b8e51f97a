"""Requeuing: whether an event, or the events during an attempt, are worth another attempt at an entry.

The hints of the plugins to blame are asked. A hint that raises counts as `Queue`: a needless attempt costs little,
while a pod that is not woken waits for minutes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Hint
from fairlead.core.model.pod import Pod

if TYPE_CHECKING:
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.engine.queue.hints import Hints, Registration
    from fairlead.core.engine.queue.inflight import Noted
    from fairlead.core.model.events import ClusterEvent


class Requeue(Enum):
    SKIP = "skip"
    AFTER_BACKOFF = "after backoff"
    IMMEDIATELY = "immediately"


class Requeuing:
    def __init__(self, hints: Hints, asked: Counter[tuple[str, str, str]], complaints: deque[str]) -> None:
        self.hints = hints
        self._asked = asked
        self._complaints = complaints

    def reconfigure(self, hints: Hints) -> None:
        """Ask other hints from now on."""
        self.hints = hints

    def judge(self, entry: Entry, event: ClusterEvent, old: object, new: object) -> Requeue:
        """How to requeue an entry because of one event. If a plugin whose refusal was `pending` says `Queue`, there is
        no backoff."""
        blamed = entry.blamed
        if not blamed:
            return Requeue.AFTER_BACKOFF
        if event.is_wildcard:
            for_all = new is None or (isinstance(new, Pod) and entry.stands_for(new.uid))
            return Requeue.AFTER_BACKOFF if for_all else Requeue.SKIP
        asked = self.hints.listeners(event).by_profile.get(entry.pod.scheduler_name)
        if asked is None:
            return Requeue.AFTER_BACKOFF
        verdicts = (
            Requeue.IMMEDIATELY if registration.plugin in entry.refusal.pending else Requeue.AFTER_BACKOFF
            for registration in asked
            if registration.plugin in blamed
            and any(self._says_queue(registration, pod, event, old, new) for pod in entry.faces())
        )
        return _best(verdicts, may_hurry=bool(entry.refusal.pending))

    def judge_all(self, entry: Entry, noted: list[Noted] | None) -> Requeue:
        """How to requeue an entry because of the events during its attempt; `noted` is None if they were not kept."""
        if not entry.blamed or noted is None:
            return Requeue.AFTER_BACKOFF
        verdicts = (self.judge(entry, event, old, new) for event, old, new in noted)
        return _best(verdicts, may_hurry=bool(entry.refusal.pending))

    def _says_queue(self, registration: Registration, pod: Pod, event: ClusterEvent, old: object, new: object) -> bool:
        try:
            said = Hint.QUEUE if registration.hint is None else registration.hint(pod, old, new)
            label = said.value
        except Exception as error:
            said, label = Hint.QUEUE, "Error"
            self._complaints.append(
                f"QueueingHintFn returns error: {type(error).__name__}: {error} "
                f"(event {event.label}, plugin {registration.plugin}, pod {pod.key})"
            )
        self._asked[registration.plugin, event.label, label] += 1
        return said is Hint.QUEUE


def _best(verdicts: Iterable[Requeue], *, may_hurry: bool) -> Requeue:
    """The most favourable verdict; stops asking when no better one is possible. Only the hint of a pending plugin
    (`may_hurry`) can lead to `immediately`."""
    best = Requeue.SKIP
    for verdict in verdicts:
        if verdict is Requeue.IMMEDIATELY:
            return verdict
        if verdict is Requeue.AFTER_BACKOFF:
            best = verdict
            if not may_hurry:
                return best
    return best
