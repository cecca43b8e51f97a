"""Turns: whose attempt comes next, and what plugins say of pods that wait for permission.

Usually the Backlog's first entry is next. A plugin that drives groups pod by pod (Koordinator's Coscheduling) may name
another pod through `next_pod`: it is taken out of whichever queue it waits in, although that plugin's own gate holds it
there. Whatever an attempt made such plugins say of waiting pods (`Cluster.permit_orders`) is carried out before the
next attempt begins.

Invariant: no order is left when an attempt begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.binding import Binding
    from fairlead.core.engine.cycle.under_way import BindingsUnderWay
    from fairlead.core.engine.queue.backlog import Backlog
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.framework.profile import Profile
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.pod_states import PermitOrder


class Turns:
    def __init__(
        self, profiles: Iterable[Profile], cluster: Cluster, backlog: Backlog, bindings: BindingsUnderWay,
        look_after: Callable[[Sequence[Binding]], None],
    ) -> None:  # fmt: skip
        self._cluster = cluster
        self._backlog = backlog
        self._bindings = bindings
        self._look_after = look_after
        self._naming: tuple[Plugin, ...] = ()
        self.reconfigure(profiles)
        self.go_on = False
        """Whether a plugin may have a pod to name, because the last attempt may have begun one at a group; or an order
        to be carried out."""

    def reconfigure(self, profiles: Iterable[Profile]) -> None:
        self._naming = tuple(plugin for profile in profiles for plugin in profile.at("next_pod"))

    def next(self, now: float) -> Entry | None:
        """The entry to try next; None if nobody waits for an attempt."""
        if self._cluster.permit_orders:
            self._carry_out()
        for plugin in self._naming if self.go_on else ():
            while uid := self._named(plugin):
                pod_state = self._cluster.pods.get(uid)
                entry = self._backlog.take_past(pod_state.seen, plugin.name, now) if pod_state is not None else None
                if entry is not None:
                    return entry
            self._carry_out()
        entry = self._backlog.pop(now)
        self.go_on = entry is not None and bool(self._naming)
        return entry

    def _named(self, plugin: Plugin) -> str:
        """The pod that a plugin names. One that raises names none."""
        try:
            return plugin.next_pod(self._cluster)
        except Exception as error:
            self._backlog.complaints.append(f"next_pod of {plugin.name} raised {type(error).__name__}: {error}")
            return ""

    def _carry_out(self) -> None:
        """Let pods go on, or refuse them, as plugins said. A refusal may make a plugin say more."""
        cluster = self._cluster
        while cluster.permit_orders:
            orders, cluster.permit_orders = cluster.permit_orders, []
            for order in orders:
                binding = self._bindings.get(order.uid)
                if binding is not None:
                    self._tell(binding, order)

    def _tell(self, binding: Binding, order: PermitOrder) -> None:
        if not order.message:
            binding.allow(order.plugin)
        elif binding.reject(order.plugin, order.message):
            binding.keeps_nomination = order.keeps_nomination
            binding.together |= order.together
        else:
            return
        self._look_after((binding,))
