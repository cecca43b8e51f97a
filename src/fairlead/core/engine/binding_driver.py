"""BindingDriver: every binding from its beginning to its end, whether an attempt, a gang or a round placed the pod.

    begin ─▶ advance ─▶ (writes, replies, advance ...) ─▶ ended: bound, or the place is given up and the pod waits again

Invariant: a write whose reply is outstanding belongs to exactly one binding, and a binding that ended is in nobody's
list any more unless a gang holds its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.engine.cycle.attempt import Committed, refused_on_node, undo
from fairlead.core.engine.cycle.binding import Binding, BindingStage, told_after_binding
from fairlead.core.model.events import ASSIGNED_POD_DELETE
from fairlead.volcano.rounds.tally import bound

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.outcome import Failure
    from fairlead.core.engine.cycle.under_way import BindingsUnderWay
    from fairlead.core.engine.explain.pod import Explanations
    from fairlead.core.engine.gangs.driver import GangDriver
    from fairlead.core.engine.guard import Guard
    from fairlead.core.engine.queue.backlog import Backlog
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.engine.step_output import StepOutput
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.flow import Reply, Write
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster

_ENDED, _WAITING = BindingStage.ENDED, BindingStage.WAITING
"""Asked for too often to be looked up on the Enum."""


class BindingDriver:
    """`fail` puts a pod back into the queue, `try_again` makes another attempt at a held place and `notice_rounds`
    wakes the rounds; the Scheduler has them, because they begin attempts and rounds."""

    gangs: GangDriver
    """Set by the Scheduler: gangs and bindings need each other."""

    def __init__(
        self,
        cluster: Cluster,
        backlog: Backlog,
        bindings: BindingsUnderWay,
        guard: Guard,
        *,
        output: StepOutput,
        explanations: Explanations,
        fail: Callable[[Entry, Failure], None],
        try_again: Callable[[Binding], None],
        notice_rounds: Callable[[], None],
    ) -> None:
        self._cluster, self._backlog, self._bindings, self._guard = cluster, backlog, bindings, guard
        self._output, self._explanations = output, explanations
        self._fail, self._try_again, self._notice_rounds = fail, try_again, notice_rounds
        self._binding_of_write: dict[Write, Binding] = {}

    def begin(self, entry: Entry, cycle: Cycle, committed: Committed) -> None:
        """A pod has a place on the table; its way to the API begins."""
        pod, output = entry.pod, self._output
        self._backlog.nominator.clear(pod.uid)
        binding = Binding(entry, cycle, committed.placed, committed.permission, now=output.now)
        self._bindings[pod.uid] = binding
        self._explanations.placed(entry, committed.placed, cycle, node=binding.node_name, now=output.now)
        if binding.open():
            binding.told = output.condition(pod, nominated=binding.node_name)
        self.advance(binding)

    def advance(self, binding: Binding, replies: Sequence[Reply] = ()) -> None:
        """Take a binding as far as it goes without another answer."""
        before = binding.past_permit
        writes = binding.advance(self._output.now, replies)
        for write in writes:
            self._binding_of_write[write] = binding
        self._output.writes += writes
        if binding.past_permit and not before:
            self._backlog.done(binding.pod.uid)
        if binding.stage is _ENDED:
            self.end(binding)
            return
        self._bindings.attend(binding)
        if binding.stage is _WAITING and binding.entry.pod.group_ref is not None:
            self.gangs.permitted(binding)

    def end(self, binding: Binding) -> None:
        """A binding came to its end: the pod is bound, or it was refused and its gang may still hold its place."""
        pod, output = binding.pod, self._output
        if binding.status is not None:
            if self.gangs.holds(binding, output.now):
                self._bindings.attend(binding)
            else:
                self._bindings.end(binding)
                self._failed(binding)
                self.gangs.refused(binding)
            return
        self._bindings.end(binding)
        self._backlog.done(pod.uid)
        note = f"Successfully assigned {pod.key} to {binding.node_name}"
        output.event(pod, kind="Normal", reason="Scheduled", action="Binding", note=note)
        if output.meter is not None and binding.cycle.profile.rounds is not None:
            output.meter.lapses.extend(bound(binding, output.now))
        self._explanations.bound(pod.uid)
        told_after_binding(binding.cycle, binding.row)
        output.decided(binding.entry, pod, "scheduled", node=binding.node_name)

    def unanswered(self) -> list[Write]:
        """Writes of bindings that have no reply yet."""
        return list(self._binding_of_write)

    def hear(self, replies: Sequence[Reply]) -> None:
        """Answers of the API arrived: those to writes of bindings move them on."""
        heard: dict[Binding, list[Reply]] = {}
        for reply in replies:
            binding = self._binding_of_write.pop(reply.write, None)
            if binding is not None:
                heard.setdefault(binding, []).append(reply)
        for binding, own in heard.items():
            if binding.stage is not _ENDED:
                self._follow(binding, self.advance, own)

    def look_after(self, bindings: Sequence[Binding]) -> None:
        """Move on those that do not wait for an answer of the API."""
        for binding in bindings:
            if self._bindings.get(binding.pod.uid) is binding:  # otherwise it ended with another of its gang
                self._follow(binding, self._look_after)

    def assumed_pod_goes(self, pod: Pod) -> Pod | None:
        """A pod that is on its way to a node was deleted. If it still waits for permission it is refused; otherwise
        its place is forgotten, and the API will refuse the binding. Returns the pod as it was placed."""
        binding = self._bindings.get(pod.uid)
        if binding is not None and binding.reject("", "removed"):
            self.end(binding)
            return None
        return self._cluster.forget(pod.uid)

    def _look_after(self, binding: Binding) -> None:
        if binding.stage is _ENDED:
            self.end(binding)
        elif binding.stage is BindingStage.HELD:
            self._try_again(binding)
        else:
            self.advance(binding, ())

    def _follow(self, binding: Binding, work: Callable[..., None], *arguments: object) -> None:
        """A binding's next step. If that raises, the binding ends as one that was refused."""
        if (
            not self._guard.follow(binding, self._output.now, work, *arguments)
            and self._bindings.get(binding.pod.uid) is binding
        ):
            self._bindings.end(binding)
            self._guard.do("ending a binding", self._failed, binding)

    def _failed(self, binding: Binding) -> None:
        """The place is given up; that is news for others, and for this pod unless it was refused."""
        assert binding.status is not None
        rejected, now = binding.status.code.rejected, self._output.now
        freed = undo(binding.cycle, binding.row)
        if binding.cycle.profile.rounds is not None:
            self._leave_to_next_round(binding)
            return
        if freed is not None and not rejected:
            self._backlog.move(ASSIGNED_POD_DELETE, freed, None, now)
        failure = replace(refused_on_node(binding.status), told=binding.told)
        keeps = binding.keeps_nomination or (not rejected and self._backlog.nominator.has_promised(binding.pod.uid))
        self._fail(binding.entry, replace(failure, nominated=None) if keeps else failure)
        if freed is not None and rejected:
            self._backlog.move(ASSIGNED_POD_DELETE, freed, None, now, only=_missed(binding, keeps=keeps))

    def _leave_to_next_round(self, binding: Binding) -> None:
        """A placement by a round that did not come to be: the pod waits for the next round."""
        assert binding.status is not None
        message = f"failed to bind to node {binding.node_name}: {binding.status.message}"
        self._output.event(binding.pod, kind="Warning", reason="FailedScheduling", action="Binding", note=message)
        pod_state = self._cluster.pods.get(binding.pod.uid)
        if pod_state is not None and not pod_state.seen.node_name:
            self._output.condition(pod_state.seen, reason="SchedulerError", message=message)
        self._notice_rounds()  # the patch may say nothing new, and then no change wakes the next round
        self._output.decided(binding.entry, binding.pod, "error", message=message)


def _missed(binding: Binding, *, keeps: bool) -> Callable[[Entry], bool]:
    """Who may have missed the place that a refused pod gives back: every other pod. If a group gives the place back,
    only those whose last attempt found it taken or promised: two groups that each find half of their room would
    otherwise wake each other for ever."""
    together, gives_up_promise = binding.together, bool(binding.cycle.pod.nominated_node) and not keeps
    since = binding.entry.cycle if together and not gives_up_promise else -1
    own = together | {binding.pod.uid}
    return lambda entry: entry.pod.uid not in own and entry.cycle > since
