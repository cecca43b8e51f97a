"""BindingDriver: every binding from its beginning to its end, whichever mode placed the pod.

    begin ─▶ advance ─▶ (writes, replies, advance ...) ─▶ ended: bound, or the place is given up
                                                           └─▶ Placer.bound, Placer.failed

Invariant: a write whose reply is outstanding belongs to exactly one binding, and a binding that ended is in nobody's
list any more unless a gang holds its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.engine.cycle.attempt import Committed
from fairlead.core.engine.cycle.binding import Binding, BindingStage, call_post_bind
from fairlead.core.engine.queue.entry import Entry
from fairlead.core.framework.points import Permission, unreserve

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.placement import Placed
    from fairlead.core.engine.cycle.under_way import BindingsUnderWay
    from fairlead.core.engine.guard import Guard
    from fairlead.core.engine.modes import Placer
    from fairlead.core.engine.queue.backlog import Backlog
    from fairlead.core.engine.step_output import StepOutput
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.flow import Reply, Write
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster

_ENDED, _WAITING = BindingStage.ENDED, BindingStage.WAITING
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""


class BindingDriver:
    def __init__(
        self, cluster: Cluster, backlog: Backlog, bindings: BindingsUnderWay, guard: Guard, output: StepOutput
    ) -> None:
        self._cluster, self._backlog, self._bindings, self._guard = cluster, backlog, bindings, guard
        self._output = output
        self._binding_of_write: dict[Write, Binding] = {}

    def begin(self, entry: Entry, cycle: Cycle, committed: Committed, placer: Placer) -> None:
        """A pod has a place on the table; its way to the API begins."""
        pod, output = entry.pod, self._output
        self._backlog.nominator.clear(pod.uid)
        binding = Binding(entry, cycle, committed.placed, committed.permission, placer, now=output.now)
        self._bindings[pod.uid] = binding
        output.explanations.placed(entry, committed.placed, cycle, node=binding.node_name, now=output.now)
        self._follow(binding, self._open)

    def _open(self, binding: Binding) -> None:
        if binding.open():
            binding.note_condition(self._output.condition(binding.pod, nominated=binding.node_name))
        self.advance(binding)

    def begin_unqueued(self, pod: Pod, cycle: Cycle, placed: Placed, placer: Placer) -> None:
        """The same for a pod that its mode took out of no queue, and that needs nobody's permission."""
        now = self._output.now
        self.begin(Entry(pod, now, attempts=1, first_attempt=now), cycle, Committed(placed, Permission()), placer)

    def advance(self, binding: Binding, replies: Sequence[Reply] = ()) -> None:
        """Take a binding as far as it goes without another answer."""
        before = binding.past_permit
        writes = binding.advance(self._output.now, replies)
        for write in writes:
            self._binding_of_write[write] = binding
        self._output.add(writes)
        if binding.past_permit and not before:
            self._backlog.done(binding.pod.uid)
        if binding.stage is _ENDED:
            self.end(binding)
            return
        self._bindings.attend(binding)
        if binding.stage is _WAITING and binding.entry.pod.group_ref is not None:
            binding.placer.permitted(binding)

    def end(self, binding: Binding) -> None:
        """A binding came to its end: the pod is bound, or it was refused and its gang may still hold its place."""
        pod, output = binding.pod, self._output
        if binding.status is not None:
            if binding.placer.holds(binding):
                self._bindings.attend(binding)
            else:
                self._bindings.end(binding)
                self._failed(binding)
            return
        self._bindings.end(binding)
        self._backlog.done(pod.uid)
        note = f"Successfully assigned {pod.key} to {binding.node_name}"
        output.event(pod, kind="Normal", reason="Scheduled", action="Binding", note=note)
        binding.placer.bound(binding)
        output.explanations.bound(pod.uid)
        self._guard.do("calling PostBind", call_post_bind, binding.cycle, binding.row)
        output.decided(binding.entry, pod, "scheduled", node=binding.node_name)

    def unanswered(self) -> list[Write]:
        """Writes of bindings that have no reply yet."""
        return list(self._binding_of_write)

    def take_replies(self, replies: Sequence[Reply]) -> None:
        """Answers of the API arrived: those to writes of bindings move them on."""
        replies_of: dict[Binding, list[Reply]] = {}
        for reply in replies:
            binding = self._binding_of_write.pop(reply.write, None)
            if binding is not None:
                replies_of.setdefault(binding, []).append(reply)
        for binding, own in replies_of.items():
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
            binding.placer.try_again(binding)
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
        """The place is given up."""
        binding.placer.failed(binding, self.give_back(binding))

    def give_back(self, binding: Binding) -> Pod | None:
        """Take the pod off its row; returns it as it was placed, or None if it was not assumed any more. Whatever a
        plugin raises over it, the pod goes on to wait."""
        self._guard.do("unreserving", unreserve, binding.cycle, binding.row)
        return self._cluster.forget(binding.pod.uid)
