"""Guard: an exception costs one object its turn, never a step. It keeps the table right and the culprit apart.

What a step has written so far stays, because it was decided; what the failed part took from the table is given back;
the object is quarantined, with a reason that its users read, a counter and a line in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlead.core.engine.cycle.outcome import Failure
from fairlead.core.engine.quarantine import Quarantine
from fairlead.core.model.reasons import failed
from fairlead.core.state.audit import Audit

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Mapping, Sequence

    from fairlead.core.engine.cycle.binding import Binding
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.framework.raised import RaisedErrors
    from fairlead.core.model.flow import Change
    from fairlead.core.state.cluster import Cluster


class Guard:
    def __init__(
        self, cluster: Cluster, bindings: Mapping[str, Binding], complaints: deque[str], raised: RaisedErrors
    ) -> None:
        """`raised` keeps the tracebacks of what plugins raise, and of what is raised here."""
        self._cluster, self._bindings = cluster, bindings
        self._errors = raised
        self.complaints = complaints
        """Problems for the log that did not stop anything."""
        self.quarantine = Quarantine()
        self.audit = Audit(cluster)

    def tick(self, now: float) -> None:
        """What is to be done now and then: recount some rows, let old cases go, say where plugins raised."""
        self.complaints.extend(self._errors.take_news())
        self._complain(self.audit.look(now), "the table differed from its pods, and was repaired: ")
        if self.quarantine.held:
            self.quarantine.sweep(now)

    def do(self, doing: str, work: Callable[..., None], *arguments: object) -> None:
        """Run work that belongs to no single object."""
        try:
            work(*arguments)
        except Exception as error:
            self.quarantine.raised[doing] += 1
            words = f"{doing}: {type(error).__name__}: {error}"
            self._errors.note(words, error)
            self._raised(words)

    def take_in(self, changes: Sequence[Change], now: float, take: Callable[[Change, float], None]) -> None:
        """Take in each change; one that raises is left out."""
        for change in changes:
            try:
                take(change, now)
            except Exception as error:
                metadata = change.doc.get("metadata") or {}
                name = "/".join(filter(None, (change.kind.resource, metadata.get("namespace"), metadata.get("name"))))
                reason = self.quarantine.put(name, "taking in changes", error, now=now)
                self._errors.note(reason, error)
                self._raised(f"{name} is left out of account until it changes: {reason}")

    def attempt(self, entry: Entry, now: float, schedule: Callable[[Entry], None]) -> Failure | None:
        """One attempt. None if it came to an end; otherwise the failure to report for the pod."""
        held = self.quarantine.held
        reason = self.quarantine.reason(entry.uid, now, _looks(entry)) if held and entry.uid in held else ""
        if not reason:
            try:
                schedule(entry)
                return None
            except Exception as error:
                reason = self.quarantine.put(entry.uid, "scheduling", error, now=now, fingerprint=_looks(entry))
                self._errors.note(reason, error)
                self._give_back(entry)
                self._raised(f"{entry.key}: {reason}")
        return Failure(failed(reason), reason)

    def follow(self, binding: Binding, now: float, work: Callable[..., None], *arguments: object) -> bool:
        """One binding's next step. If that raises, the binding has failed, the pod is quarantined, and the answer is
        False."""
        try:
            work(binding, *arguments)
            return True
        except Exception as error:
            looks = _looks(binding.entry)
            reason = self.quarantine.put(binding.pod.uid, "binding", error, now=now, fingerprint=looks)
            self._errors.note(reason, error)
            binding.give_up(failed(reason))
            self._raised(f"{binding.pod.key} was not bound: {reason}")
            return False

    def _give_back(self, entry: Entry) -> None:
        """Places that an attempt took before it raised, and that no binding has."""
        members = entry.gang.members.values() if entry.gang is not None else ()
        for uid in [entry.pod.uid, *(pod_state.seen.uid for pod_state in members)]:
            if uid not in self._bindings:
                self._cluster.forget(uid)

    def _raised(self, words: str) -> None:
        self._complain(words, "an error inside the scheduler: ")
        self._complain(self.audit.after_failure(), "the table was repaired: ")

    def _complain(self, words: str, preface: str) -> None:
        if words:
            self.complaints.append(preface + words)


def _looks(entry: Entry) -> object:
    """Decides whether an entry has changed since it raised: who waits in it, and what they request."""
    return frozenset((pod.uid, id(pod.shape), tuple(sorted(pod.labels.items()))) for pod in entry.waiting())
