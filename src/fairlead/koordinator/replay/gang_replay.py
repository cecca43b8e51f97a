"""Gangs in a replay: which pods of a step may be tried, who waits with a place, and who is let go or refused.

The members of a gang are tried in random order and are alike, so the replay follows the recorded order: each recorded
attempt must be one that could be made at this moment, and none may be missing at the end of the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.core.engine.cycle.attempt import refused_on_node, undo
from fairlead.core.model.reasons import unschedulable
from fairlead.core.state.pod_states import PodPlace
from fairlead.koordinator.gangs.index import gang_index_of
from fairlead.koordinator.gangs.plugin import Coscheduling
from fairlead.koordinator.records.gangs import GROUP_LABEL, NAME_LABEL, PREFIX, gang_id
from fairlead.koordinator.replay.agreement import comparable

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.effects import Effects
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Doc
    from fairlead.core.state.cluster import Cluster

Differences = Iterator[tuple[str, Any, Any]]


def is_in_gang(document: Doc) -> bool:
    metadata = document["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return bool(labels.get(GROUP_LABEL) or labels.get(NAME_LABEL) or annotations.get(PREFIX + "name"))


def in_order_of_last_try(entries: Sequence[tuple[int, Doc]]) -> list[tuple[int, Doc]]:
    """Entries as they were tried last. Where a group was tried twice, the order is that of the first time; the second
    time those that got a place came first, then the one that failed by itself."""

    def place(entry: tuple[int, Doc]) -> int:
        decision = entry[1]
        if decision.get("tried") != 2:
            return 0
        if decision.get("assumed") or decision.get("node"):
            return 0
        return 2 if "GangGroup" in (decision.get("message") or "") else 1

    return sorted(entries, key=place)


def second_round(entries: Sequence[tuple[int, Doc]]) -> list[tuple[int, Doc]]:
    """The entries that were tried a second time with nothing but failures, in their order; none if all were not. A gang
    whose members had places is tried again when room was made for it, before the victims are gone."""
    twice = [entry for entry in entries if entry[1].get("tried") == 2]
    lost = [d for _, d in twice if d.get("assumed") and not (d.get("message") or "").startswith("0/1 nodes")]
    if not lost:
        return []
    return sorted(twice, key=lambda entry: "GangGroup" in (entry[1].get("message") or ""))


class GangReplay:
    def __init__(self, profile: Profile) -> None:
        plugins = (plugin for plugin in profile.plugins() if isinstance(plugin, Coscheduling))
        self.plugin: Coscheduling | None = next(plugins, None)


class GangStep:
    """One step: the attempts that are made in it."""

    def __init__(self, gangs: GangReplay, cluster: Cluster, decisions: Sequence[Doc], effects: Effects) -> None:
        """`effects` are those of all cycles of the step."""
        self._plugin = gangs.plugin
        self._cluster = cluster
        self._effects = effects
        self._decisions = {self._uid(decision): decision for decision in decisions}
        self._places: dict[str, tuple[Cycle, int]] = {}
        self._messages: dict[str, str] = {}
        self._next = ""

    def _uid(self, decision: Doc) -> str:
        return str((decision.get("pod") or decision["reservation"])["metadata"]["uid"])

    def decision_of(self, cycle: Cycle) -> Doc | None:
        return self._decisions.get(cycle.pod.uid)

    def legality(self, decision: Doc) -> Differences:
        """Whether a pod may be tried now, or, if it was not tried, whether it had to be."""
        plugin, pod_state = self._plugin, self._cluster.pods.get(self._uid(decision))
        if plugin is None or pod_state is None or not gang_id(pod_state.seen):
            return
        gang_index = gang_index_of(self._cluster)
        attempt = gang_index.attempt
        if not decision["tried"]:
            if plugin.pre_enqueue(pod_state.seen, self._cluster) is None and not self._group_was_tried(pod_state.seen):
                yield "tried", 0, 1
            return
        if attempt is not None and gang_id(pod_state.seen) in attempt.group:
            if pod_state.seen.uid in attempt.tried and decision["tried"] < 2 and self._next != pod_state.seen.uid:
                yield "tried", decision["tried"], "tried before in this attempt"
            return
        for gang in gang_index.members_of(gang_index.gangs[gang_id(pod_state.seen)].spec.groups):  # type: ignore[union-attr]
            gang_index.group_of(gang).representative = ""
        refused = plugin.pre_enqueue(pod_state.seen, self._cluster)
        if refused is not None:
            yield "tried", decision["tried"], refused.message

    def _group_was_tried(self, pod: Any) -> bool:
        plugin = self._plugin
        assert plugin is not None
        gang = gang_index_of(self._cluster).gang_of(pod)
        groups = gang.spec.groups if gang is not None and gang.spec is not None else ()
        return any(
            decision["tried"] and gang_id(self._cluster.pods[uid].seen) in groups
            for uid, decision in self._decisions.items()
            if uid in self._cluster.pods
        ) or any(decision.get("again") for decision in self._decisions.values())

    def note_message(self, decision: Doc, message: str) -> None:
        """The message that a pod was given at last."""
        self._messages[self._uid(decision)] = message

    # ---- places ----

    def placed(self, cycle: Cycle, row: int) -> None:
        self._places[cycle.pod.uid] = (cycle, row)

    def let_go(self) -> list[tuple[Cycle, int]]:
        """All that have a place and need not wait any more."""
        self._effects.permit_orders.clear()
        return list(self._places.values())

    def after_try(self) -> None:
        """Carry out what the plugin said of waiting pods, and let an attempt end in which all were tried."""
        self._carry_out()
        plugin = self._plugin
        if plugin is None:
            return
        attempt = gang_index_of(self._cluster).attempt
        if attempt is not None:
            tried = set(attempt.tried)
            plugin.next_pod(self._cluster, self._effects)
            if gang_index_of(self._cluster).attempt is not None:
                attempt.tried &= tried  # the recorded order counts, not ours
            self._carry_out()

    def _carry_out(self) -> None:
        refused: list[tuple[Cycle, int]] = []
        for order in self._effects.take_permit_orders():
            if order.message and order.uid in self._places:
                refused.append(self._places.pop(order.uid))
                self._messages[order.uid] = refused_on_node(unschedulable(order.message).by(order.plugin)).message
        for cycle, row in refused:
            undo(cycle, row)
        if refused:
            self._carry_out()

    def late_differences(self, decision: Doc) -> Differences:
        """The message of a pod that had a place and lost it again."""
        uid = self._uid(decision)
        if uid in self._messages or decision.get("assumed"):
            said, got = comparable(decision.get("message")), comparable(self._messages.get(uid))
            if said != got:
                yield "message", said, got

    def give_back(self, uid: str) -> None:
        """A pod's place, so that the recorded one can be taken."""
        if uid in self._places:
            cycle, row = self._places.pop(uid)
            undo(cycle, row)
        elif (pod_state := self._cluster.pods.get(uid)) is not None and pod_state.place is PodPlace.ASSUMED:
            self._cluster.forget(uid)
        self._effects.permit_orders.clear()
