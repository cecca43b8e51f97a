"""Turns: whose attempt comes next, and what plugins say of pods that wait for permission.

Usually the Backlog's first entry is next. A plugin that drives groups pod by pod may name another pod through
`next_pod`: it is taken out of whichever queue it waits in, although that plugin's own gate holds it there. Whatever an
attempt made such plugins say of waiting pods (`Effects.permit_orders`) is carried out before the next attempt begins.

Invariant: no order is left when an attempt begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.binding import Binding
    from fairlead.core.engine.modes import SchedulerParts
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.framework.effects import PermitOrder
    from fairlead.core.framework.extended_plugin import ExtendedPlugin
    from fairlead.core.framework.profile import Profile


class Turns:
    def __init__(self, parts: SchedulerParts) -> None:
        self._cluster, self._backlog, self._effects = parts.cluster, parts.backlog, parts.effects
        self._bindings, self._binding_driver = parts.bindings, parts.binding_driver
        self._naming: tuple[ExtendedPlugin, ...] = ()
        self.go_on = False
        """Whether a plugin may have a pod to name, because the last attempt may have begun one at a group; or an order
        to be carried out."""

    def reconfigure(self, profiles: Iterable[Profile]) -> None:
        self._naming = tuple(plugin for profile in profiles for plugin in profile.extended_at("next_pod"))

    def next(self, now: float) -> Entry | None:
        """The entry to try next; None if nobody waits for an attempt."""
        if self._effects.permit_orders:
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

    def _named(self, plugin: ExtendedPlugin) -> str:
        """The pod that a plugin names. One that raises names none."""
        try:
            return plugin.next_pod(self._cluster, self._effects)
        except Exception as error:
            self._backlog.complaints.append(f"next_pod of {plugin.name} raised {type(error).__name__}: {error}")
            return ""

    def _carry_out(self) -> None:
        """Let pods go on, or refuse them, as plugins said. A refusal may make a plugin say more."""
        while self._effects.permit_orders:
            for order in self._effects.take_permit_orders():
                binding = self._bindings.get(order.uid)
                if binding is not None:
                    self._apply(binding, order)

    def _apply(self, binding: Binding, order: PermitOrder) -> None:
        if not order.message:
            binding.allow(order.plugin)
        elif not binding.reject(
            order.plugin, order.message, keeps_nomination=order.keeps_nomination, together=order.together
        ):
            return
        self._binding_driver.look_after((binding,))
