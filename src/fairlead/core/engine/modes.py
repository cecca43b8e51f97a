"""SchedulingMode: one way to place pods, of which a Scheduler has several side by side over the same cluster.

    Scheduler.step: changes ─▶ take_replies(replies) ─▶ look_after ─▶ step, each of every mode in turn
    BindingDriver:  a binding ─▶ bound, failed, holds, permitted, try_again, of the mode that placed its pod

PodMode (pod_mode.py) places the pods of kube profiles one by one and is always there. A profile whose field `mode` is
set has another one: `ModeSettings.made_by` is its name among the modes of the families (`Family.modes`), which make it
from the SchedulerParts. A mode serves all profiles that have settings of its own, and stays when there are none any
more: what it has placed may still fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fairlead.core.family import families, resolve

if TYPE_CHECKING:
    from random import Random

    from fairlead.core.engine.binding_driver import BindingDriver
    from fairlead.core.engine.cycle.binding import Binding
    from fairlead.core.engine.cycle.events import EventRecorder
    from fairlead.core.engine.cycle.under_way import BindingsUnderWay
    from fairlead.core.engine.guard import Guard
    from fairlead.core.engine.options import Options
    from fairlead.core.engine.queue.backlog import Backlog
    from fairlead.core.engine.step_output import StepOutput
    from fairlead.core.framework.effects import Effects
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.explanation import Explained, Explanation
    from fairlead.core.model.flow import Change, Reply, Write
    from fairlead.core.model.lack import Lack
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster

LacksOf = Callable[[Sequence["Pod"], Sequence[str]], tuple["Lack", ...]]
"""What plugins and nodes are short of for pods that are to start together, with the texts of their refusals."""


@dataclass(frozen=True, slots=True)
class SchedulerParts:
    """The parts of a Scheduler that its modes share."""

    options: Options
    cluster: Cluster
    backlog: Backlog
    bindings: BindingsUnderWay
    binding_driver: BindingDriver
    guard: Guard
    output: StepOutput
    recorder: EventRecorder
    effects: Effects
    rng: Random


class Placer(Protocol):
    """What placed a pod. The BindingDriver says what becomes of the binding; the bodies here are those of a mode
    that does not hold places for gangs."""

    def bound(self, binding: Binding) -> None:
        """The API has bound the pod."""
        return

    def failed(self, binding: Binding, freed: Pod | None) -> None:
        """The pod was not bound. `freed` is the pod as it was placed, if its place has been given back to the table."""
        ...

    def holds(self, binding: Binding) -> bool:
        """Whether the place of a pod that could not be bound is held, so that `try_again` follows."""
        return False

    def permitted(self, binding: Binding) -> None:
        """The pod of a group still waits for permission, perhaps for nothing but its group."""
        return

    def try_again(self, binding: Binding) -> None:
        """Make another attempt at a place that is held."""
        return


class SchedulingMode(Placer, Protocol):
    """One way to place pods. What it writes goes into SchedulerParts.output, and the pods that it places to
    SchedulerParts.binding_driver. The bodies here are those of a mode with nothing to do or to say."""

    is_held: bool = False
    """Whether it has to wait, because this account may not read what it needs."""

    def hold(self, held: bool) -> None:
        self.is_held = held

    # ---- profiles ----

    def serves(self, profile: Profile) -> bool:
        """Whether pods of this profile are placed by this mode."""
        ...

    def reconfigure(self, profiles: Sequence[Profile]) -> None:
        """Schedule by these profiles from now on, as far as they are this mode's. The Scheduler calls it once when it
        has made the mode, and whenever the profiles change."""
        ...

    # ---- a step, in this order ----

    def take_replies(self, replies: Sequence[Reply], now: float) -> None:
        """Take in what became of earlier writes."""
        return

    def look_after(self, now: float) -> None:
        """Go on with what is under way besides bindings, before anything new begins."""
        return

    def step(self, now: float, changes: Sequence[Change], interrupted_by: Sized) -> None:
        """Place pods, as many as one slice allows; one attempt at most once `interrupted_by` holds something."""
        ...

    def wake_at(self, now: float) -> float | None:
        """When it wants its next step although nothing happens."""
        return None

    def noticed(self, now: float) -> None:
        """The cluster changed without a watch event."""
        return

    def unanswered(self) -> list[Write]:
        """Writes besides those of bindings that have no reply yet."""
        return []

    # ---- explanations, between two steps ----

    def about_pod(self, pod: Pod) -> Explanation | None:
        """Why a pod waits; None if this mode knows nothing of it."""
        return None

    def about_group(self, namespace: str, name: str, lacks_of: LacksOf) -> Explained | None:
        """All that is known about a group; None if this mode does not know it."""
        return None

    def about_queue(self, name: str) -> Explained | None:
        """What a queue holds and may hold; None if this mode has no such queue."""
        return None

    def lack_explainers(self, scheduler_name: str) -> Iterable[object]:
        """The plugins by which pods of this name are scheduled here."""
        return ()

    def promised(self, priority: int) -> Iterator[tuple[int, Pod]]:
        """Rows that are promised to pods which have no place there yet, as far as pods of this priority have to leave
        them alone."""
        return iter(())

    def figures(self) -> Mapping[str, object]:
        """The mode's own figures, by profile."""
        return {}


def missing_modes(
    profiles: Iterable[Profile], parts: SchedulerParts, modes: Sequence[SchedulingMode]
) -> tuple[SchedulingMode, ...]:
    """The modes that profiles need besides these."""
    made: list[SchedulingMode] = []
    for profile in profiles:
        if not any(mode.serves(profile) for mode in (*modes, *made)):
            assert profile.mode is not None
            made.append(_maker(profile.mode.made_by)(parts))
    return tuple(made)


def _maker(name: str) -> Callable[[SchedulerParts], SchedulingMode]:
    (target,) = (family.modes[name] for family in families() if name in family.modes)
    maker: Callable[[SchedulerParts], SchedulingMode] = resolve(target)
    return maker
