"""Plugin: a policy, with one optional method per extension point. Everything a plugin author overrides is here.

A method that is not overridden is a point that the plugin does not take part in. Filters and scores answer for a whole
selection of nodes at once, in columns; core/framework/lift.py turns a plain function of a pod and a node into such a
plugin.

| method | kube-scheduler | answers |
|---|---|---|
| `pre_enqueue` | PreEnqueue | may this pod enter the active queue? |
| `queue_key` | QueueSort | the order of the active queue, smallest first |
| `pre_filter` | PreFilter | look at the pod once; step aside, refuse, or narrow the nodes |
| `filter` | Filter | which rows are refused, and why |
| `add_pod`, `remove_pod` | AddPod, RemovePod | what if this other pod were (not) on that row |
| `post_filter` | PostFilter | nothing fits: can room be made? |
| `pre_score`, `score`, `normalize_score` | PreScore, Score, NormalizeScore | how good is each feasible row |
| `reserve`, `unreserve` | Reserve, Unreserve | the pod is about to be placed; it is not after all |
| `permit` | Permit | bind now, later, or not at all |
| `pre_bind_pre_flight` | PreBindPreFlight | before a wait for permission: will `pre_bind` have work? |
| `pre_bind`, `bind`, `post_bind` | PreBind, Bind, PostBind | the way to the API |
| `placement_generate` | PlacementGenerate | where may a whole gang go |
| `placement_score` | PlacementScore | how good is a place for a whole gang |
| `pod_group_post_filter` | PodGroupPostFilter | a gang does not fit: can room be made for all of it? |

`scope` is a promise about what an answer depends on. With it, answers are cached and only changed rows are judged
again, so that equal pods cost nearly the same on 500 nodes and on 50,000. The default promises nothing and is always
safe. What a plugin may add for speed alone is in core/framework/results/cached_plugin.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from fairlead.core.model.records import record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.gang import (
        GangCase,
        GangDomain,
        GangRules,
        PodGroupPostFilterResult,
        Proposal,
        TrialFollower,
    )
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.events import ClusterEvent
    from fairlead.core.model.flow import Doc, OutsideWork, Reply, Watch, Write
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.reasons import Reject, Status
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.gangs import Gang
    from fairlead.core.state.nodes import Nodes


class Scope(Enum):
    """What a plugin's answer about a row depends on, besides the pod."""

    STATIC = "static"
    """The Node object: labels, taints, allocatable, spec."""
    COUNTED = "counted"
    """The Node object and what is counted of the pods on that node: requests, ports, labels, and what an index of the
    plugin adds up when a pod comes or goes. A pod that starts does not make the plugin judge its node again."""
    ROW = "row"
    """The Node object and everything about the pods on that node, their phase and annotations too."""
    CLUSTER = "cluster"
    """Anything at all. Never cached."""


class Hint(Enum):
    """What an event means for a pod that a plugin refused."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


@runtime_checkable
class DeviceExplainer(Protocol):
    """A plugin that can say why a pod does not get its devices. It is called when somebody requests an explanation."""

    def details(self, pod: Pod, cluster: Cluster) -> Sequence[Doc]:
        """One document for each request that is not served."""
        ...


@dataclass(frozen=True, slots=True)
class Interest:
    """An event that may make a refused pod schedulable. `hint(pod, old, new)` decides whether it does for one pod;
    without a hint it always may."""

    event: ClusterEvent
    hint: Callable[[Pod, object, object], Hint] | None = None


@record(frozen=True, slots=True)
class Wait:
    """Permit's third answer: keep the place, bind later, give up after `timeout` seconds."""

    timeout: float
    reason: str = ""


@record(frozen=True, slots=True)
class PostFilterResult:
    """The result of PostFilter. `nominated` is the node that will be free; None leaves an earlier nomination as it is,
    and the empty string clears it. `alternatives` returns all nodes that were as good, the chosen one among them, each
    with its victims; it must be called before the cluster changes."""

    status: Status
    nominated: str | None = None
    victims: tuple[Pod, ...] = ()
    alternatives: Callable[[], Sequence[tuple[str, tuple[Pod, ...]]]] = tuple


class Errand(Protocol):
    """Work of PreBind or Bind that takes more than one write. After `start`, `progress` is called when replies to its
    writes or changes of the cluster came in, and at `wake_at`, until it returns how the errand ended."""

    def start(self, now: float) -> list[Write]: ...

    def progress(self, now: float, cluster: Cluster, replies: Sequence[Reply]) -> Status | list[Write] | None:
        """How it ended; None while it goes on, or the writes that it goes on with."""
        ...

    def wake_at(self) -> float | None: ...


class ReplyErrand(ABC):
    """An Errand that knows when a change of the cluster cannot take it further: it is not called then. With
    thousands of bindings under way, all of them would be called at every change."""

    __slots__ = ()

    @abstractmethod
    def waits_for_replies(self) -> bool:
        """Whether `progress` without a reply, before `wake_at`, would do nothing and return None."""


class Plugin:
    """A policy. Subclass it, name it, override the points it has something to say at."""

    name: str = ""
    """The name in reasons, scores and metrics."""

    scope: Scope = Scope.CLUSTER
    """What its answers depend on."""

    weight: int = 1
    """The weight of its score if the configuration gives none."""

    scores_grow: bool = False
    """Whether `placement_score` never gives a placement less for taking more members of the gang."""

    frees_room: bool = True
    """Whether its `post_filter` may name a node on which there is no room for the pod yet."""

    idle_if_skipped: bool = False
    """Whether a plugin that stepped aside in `pre_filter` has nothing to do at `reserve` and `pre_bind` either. They
    are called for every pod, so this saves two calls a pod."""

    kinds_read: tuple[Kind, ...] = ()
    """Kinds that it reads and that a scheduler does not watch otherwise."""

    objects_read: tuple[Watch, ...] = ()
    """What else it reads, where that is only a part of a kind."""

    outside: OutsideWork | None = None
    """Where its errands begin what they do in threads, so that virtual time does not run ahead of it."""

    gang_rules: GangRules | None = None
    """How the profile schedules groups as wholes; set by one plugin of the profile. None: members are scheduled
    singly."""

    def events(self) -> Sequence[Interest] | None:
        """The events that may wake a pod that this plugin refused. None: any event."""
        return None

    def concerns(self, pod: Pod) -> bool:
        """Whether this plugin has anything to say about the pod. If not it is not called, as if it had stepped aside in
        `pre_filter`. The answer depends on what cached answers depend on, because it is kept with them."""
        return True

    def looks_at_pods(self, cycle: Cycle) -> bool:
        """Whether answers about the cycle's pod that are not cached may depend on pods without affinity terms, ports
        and volumes that are on nodes. Such pods may be hidden from a pod that has their room to itself, and if no
        plugin looks at them they need not be (core/framework/row_view.py). Only called if the pod concerns it."""
        return True

    # ---- the queue ----

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        """PreEnqueue: None lets the pod into the active queue; a refusal keeps it out until one of `events` happens."""
        raise NotImplementedError

    def queue_key(self, pod: Pod, since: float) -> tuple[float, ...]:
        """QueueSort: pods with smaller keys come first. `since` is when the pod was first queued."""
        raise NotImplementedError

    # ---- the cycle ----

    def pre_filter(self, cycle: Cycle) -> Status | frozenset[str] | None:
        """None to go on, SKIP to step aside for this pod, a refusal, or the names of the only nodes in question."""
        raise NotImplementedError

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        """Filter: the rows of `nodes` that are refused, one Reject for each reason."""
        raise NotImplementedError

    def add_pod(self, cycle: Cycle, pod: Pod, row: int) -> None:
        """PreFilter's AddPod: change the notes of the cycle as if another pod were on a row."""
        raise NotImplementedError

    def remove_pod(self, cycle: Cycle, pod: Pod, row: int) -> None:
        """PreFilter's RemovePod: change the notes of the cycle as if another pod had left a row."""
        raise NotImplementedError

    def post_filter(self, cycle: Cycle, refusals: Refusals) -> PostFilterResult:
        """PostFilter: no row is feasible. Try to make room, for instance by evictions, and say what came of it."""
        raise NotImplementedError

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        """`nodes` are the feasible rows (for a plugin whose scope is not CLUSTER: all rows, and SKIP may depend on
        the pod only)."""
        raise NotImplementedError

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        """One value per row, or a single final score if it is the same for all rows."""
        raise NotImplementedError

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        """Raw scores of the feasible rows to 0..100. Not overridden: they are that already."""
        raise NotImplementedError

    # ---- after the choice ----

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        """Reserve: the pod is about to get a row. A refusal takes it back and ends the attempt."""
        raise NotImplementedError

    def unreserve(self, cycle: Cycle, row: int) -> None:
        """Undo `reserve`; called even if it was not, so that must be harmless."""

    def permit(self, cycle: Cycle, row: int) -> Status | Wait | None:
        """Permit: None binds now, a Wait later, a refusal gives the row back."""
        raise NotImplementedError

    def pre_bind_pre_flight(self, cycle: Cycle, row: int) -> Status | None:
        """PreBindPreFlight, before the pod waits for permission: Success if `pre_bind` will have work to do, so that
        the pod is nominated to the node meanwhile; Skip if it need not be called; None if that is not known yet."""
        raise NotImplementedError

    def pre_bind(self, cycle: Cycle, row: int) -> Errand | Status | None:
        """PreBind, after the pod has all permissions: work that must be done before the bind, as an Errand if it takes
        writes; None if nothing must be done."""
        raise NotImplementedError

    def bind(self, cycle: Cycle, row: int) -> Errand | Write | Status:
        """The write that binds, or SKIP to leave it to the next."""
        raise NotImplementedError

    def post_bind(self, cycle: Cycle, row: int) -> None:
        """PostBind: the API has confirmed the bind."""
        raise NotImplementedError

    # ---- gangs ----

    def placement_generate(self, gang: Gang, cluster: Cluster) -> Sequence[GangDomain] | Status | None:
        """The parts of the cluster that may take a gang, each as a whole; None if any nodes will do."""
        raise NotImplementedError

    def placement_score(self, gang: Gang, proposals: Sequence[Proposal], cluster: Cluster) -> Sequence[int] | Status:
        """0..100 for each placement that could take the gang."""
        raise NotImplementedError

    def pod_group_post_filter(self, case: GangCase) -> PodGroupPostFilterResult:
        """PodGroupPostFilter: a gang has not got its minimum. Try to make room for all of it."""
        raise NotImplementedError

    def gang_trial(self, case: GangCase) -> TrialFollower | None:
        """What follows a trial that makes room for a gang, if this plugin keeps something besides the table that pods
        give back and take; None if it does not."""
        return None


POINTS = (
    "pre_enqueue", "queue_key", "pre_filter", "filter", "post_filter", "pre_score",
    "score", "normalize_score", "reserve", "permit", "pre_bind_pre_flight", "pre_bind", "bind", "post_bind", "add_pod",
    "remove_pod", "placement_generate", "placement_score", "pod_group_post_filter",
)  # fmt: skip


def takes_part(plugin: Plugin, point: str) -> bool:
    """Whether a plugin overrides a point."""
    return getattr(type(plugin), point) is not getattr(Plugin, point)
