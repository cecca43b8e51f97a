"""Hints: which plugins listen to which events. Built once from the profiles, read at every event.

A plugin registers the events that may make a pod schedulable which it refused, each with an optional hint function that
decides for one pod (kube-scheduler's QueueingHintFn). Plugins that cannot refuse a pod are left out. The listeners of
an event are cached by resource and action, so that an event nobody listens to costs one lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.framework.extended_plugin import extends
from fairlead.core.framework.plugin import Hint, Interest, takes_part
from fairlead.core.model import events
from fairlead.core.model.events import ActionType, ClusterEvent

if TYPE_CHECKING:
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.pod import Pod

REFUSING_POINTS = ("pre_enqueue", "pre_filter", "filter", "reserve", "permit", "placement_generate")
EXTENDED_REFUSING_POINTS = ("before_pre_filter", "preferred_nodes")
EXTENDER = "Extender"
"""The name under which refusals by extenders are recorded."""

DEFAULT_INTERESTS = tuple(
    Interest(ClusterEvent(resource, ActionType.ALL))
    for resource in (
        events.POD,
        events.NODE,
        events.PERSISTENT_VOLUME,
        events.PERSISTENT_VOLUME_CLAIM,
        events.CSI_NODE,
        events.CSI_DRIVER,
        events.CSI_STORAGE_CAPACITY,
        events.STORAGE_CLASS,
        events.RESOURCE_CLAIM,
        events.DEVICE_CLASS,
    )
)
"""The events of a plugin that does not name any (`Plugin.events` returns None)."""

_TAINT_CHANGE = ClusterEvent(events.NODE, ActionType.UPDATE_NODE_TAINT)
HintFunction = Callable[["Pod", object, object], Hint]


@dataclass(frozen=True, slots=True)
class Registration:
    """One plugin's interest in one event."""

    plugin: str
    event: ClusterEvent
    hint: HintFunction | None


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who listens to an event: the plugins of all profiles, and the registrations of each profile in asking order."""

    plugins: frozenset[str]
    by_profile: Mapping[str, tuple[Registration, ...]]


class Hints:
    def __init__(self, profiles: Mapping[str, Profile], extra: Mapping[str, Sequence[Interest]] | None = None) -> None:
        self._registered = {name: tuple(_registrations(profile, extra or {})) for name, profile in profiles.items()}
        self._found: dict[tuple[str, int], Listeners] = {}

    def knows(self, profile: str) -> bool:
        return profile in self._registered

    def listeners(self, event: ClusterEvent) -> Listeners:
        """The plugins whose registrations match an event. (A wildcard event concerns all and is not looked up.)"""
        found = self._found.get((event.resource, event.action))
        if found is None:
            found = self._found[event.resource, event.action] = self._find(event)
        return found

    def _find(self, event: ClusterEvent) -> Listeners:
        by_profile = {
            name: tuple(registration for registration in registrations if registration.event.match(event))
            for name, registrations in self._registered.items()
        }
        return Listeners(frozenset(r.plugin for found in by_profile.values() for r in found), by_profile)

    def registered(self) -> Mapping[str, int]:
        """By resource, the union of the action bits that plugins of all profiles listen to."""
        union: dict[str, int] = {}
        for registrations in self._registered.values():
            for registration in registrations:
                event = registration.event
                union[event.resource] = union.get(event.resource, 0) | event.action
        return union

    def labels(self, profile: str, plugins: frozenset[str]) -> tuple[str, ...]:
        """Labels of the events that some of these plugins listen to in a profile."""
        found = (r for r in self._registered.get(profile, ()) if r.plugin in plugins)
        return tuple(dict.fromkeys(label for r in found for label in _labels(r.event)))


def _registrations(profile: Profile, extra: Mapping[str, Sequence[Interest]]) -> list[Registration]:
    """All registrations of a profile, those for one event together, events in order of their first mention."""
    asked = [(name, tuple(interests)) for name, interests in extra.items()]
    asked += [(plugin.name, _interests(plugin)) for plugin in profile.plugins() if _can_refuse(plugin)]
    by_event: dict[tuple[str, int], list[Registration]] = {}
    for name, interests in asked:
        for interest in (*interests, *_taint_change(interests)):
            event = interest.event
            together = by_event.setdefault((event.resource, event.action), [])
            together.append(Registration(name, event, interest.hint))
    return [registration for together in by_event.values() for registration in together]


def _can_refuse(plugin: Plugin) -> bool:
    return any(takes_part(plugin, point) for point in REFUSING_POINTS) or any(
        extends(plugin, point) for point in EXTENDED_REFUSING_POINTS
    )


def _interests(plugin: Plugin) -> tuple[Interest, ...]:
    said = plugin.events()
    return DEFAULT_INTERESTS if said is None else tuple(said)


def _taint_change(interests: Sequence[Interest]) -> Iterator[Interest]:
    """Taint changes for a plugin that listens to new nodes but not to them. The original adds them too, because a node
    often becomes usable by losing a taint."""
    actions = [interest.event.action for interest in interests if interest.event.resource == events.NODE]
    listens_to_new_nodes = any(action & ActionType.ADD for action in actions)
    if listens_to_new_nodes and not any(action & ActionType.UPDATE_NODE_TAINT for action in actions):
        yield Interest(_TAINT_CHANGE)


_SINGLE = tuple(action for action in ActionType if action.value.bit_count() == 1)


def _labels(event: ClusterEvent) -> Iterator[str]:
    """The labels of the single events that a registration stands for: `NodeAdd`, `NodeUpdateNodeLabel`."""
    left = event.action
    for whole in (ActionType.ALL, ActionType.UPDATE):
        if left & whole == whole:
            left &= ~int(whole)
            yield ClusterEvent(event.resource, whole).label
    for action in _SINGLE:
        if left & action:
            yield ClusterEvent(event.resource, action).label


def interests_of_extenders(profiles: Sequence[Profile]) -> Mapping[str, Sequence[Interest]]:
    """Nothing says what would change an extender's answer, so anything may."""
    return {EXTENDER: DEFAULT_INTERESTS} if any(profile.extenders for profile in profiles) else {}
