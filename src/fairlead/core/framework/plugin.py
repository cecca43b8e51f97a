"""Plugin: a policy, with one optional method per extension point. Everything a plugin author overrides is here.

A method that is not overridden is a point that the plugin does not take part in. Filters and scores answer for a whole
selection of nodes at once, in columns; core/framework/lift.py turns a plain function of a pod and a node into such a plugin.

| method | kube-scheduler | answers |
|---|---|---|
| `admit` | PreEnqueue | may this pod enter the active queue? |
| `queue_key` | QueueSort | the order of the active queue, smallest first |
| `begin`, `end` | BeforePreFilter (Koordinator) | before anybody is asked: refuse, or show the table otherwise |
| `next_pod` | NextPod (Koordinator) | which waiting pod to try next, whatever the queue says |
| `tend` | what the original's plugins run beside | statuses of objects that are the plugin's |
| `prepare` | PreFilter | look at the pod once; step aside, refuse, or narrow the nodes |
| `prefer` | PreferNodes, FindOneNode (Koordinator) | nodes to try before all others |
| `filter` | Filter | which rows are refused, and why |
| `added`, `removed` | AddPod, RemovePod | what if this other pod were (not) on that row |
| `rescue` | PostFilter | nothing fits: can room be made? |
| `prepare_scores`, `score`, `normalise` | PreScore, Score, NormalizeScore | how good is each feasible row |
| `reserve`, `unreserve` | Reserve, Unreserve | the pod is about to be placed; it is not after all |
| `permit` | Permit | bind now, later, or not at all |
| `prebind`, `bind`, `postbind` | PreBind, Bind, PostBind | the way to the API |
| `placements`, `score_placements` | PlacementGenerate, PlacementScore | where may a whole gang go, how good is it |
| `rescue_gang` | PodGroupPostFilter | a gang does not fit: can room be made for all of it? |

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
    from fairlead.core.framework.gang import GangCase, GangDomain, GangRescued, GangRules, Proposal, TrialFollower
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.events import ClusterEvent
    from fairlead.core.model.flow import Doc, Reply, Watch, Write
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
    ROW = "row"
    """The Node object and the pods on that node."""
    CLUSTER = "cluster"
    """Anything at all. Never cached."""


class Hint(Enum):
    """What an event means for a pod that a plugin refused."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


@runtime_checkable
class DeviceExplainer(Protocol):
    """A plugin that can say why a pod does not get its devices. It is asked when somebody wants an explanation."""

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
class Rescued:
    """The result of PostFilter. `nominated` is the node that will be free; None leaves an earlier nomination as it is,
    and the empty string clears it. `alternatives` returns all nodes that were as good, the chosen one among them, each
    with its victims; it must be called before the cluster changes."""

    status: Status
    nominated: str | None = None
    victims: tuple[Pod, ...] = ()
    alternatives: Callable[[], Sequence[tuple[str, tuple[Pod, ...]]]] = tuple


class RowTrial(Protocol):
    """Judges a row for the pod of the attempt, as if some pods were there too; the code of the refusal, 0 if it fits.
    Nominations of the pods of `own` do not count."""

    def __call__(self, row: int, there: Sequence[Pod], own: frozenset[str]) -> int: ...


class Errand(Protocol):
    """Work of PreBind or Bind that takes more than one write. After `start`, `progress` is called when replies to its
    writes or changes of the cluster came in, and at `wake_at`, until it returns how the errand ended."""

    def start(self, now: float) -> list[Write]: ...

    def progress(self, now: float, cluster: Cluster, replies: Sequence[Reply]) -> Status | list[Write] | None:
        """How it ended; None while it goes on, or the writes that it goes on with."""
        ...

    def wake_at(self) -> float | None: ...


class ReplyErrand(ABC):
    """An Errand that knows when a change of the cluster cannot take it further: it is not asked then. With thousands
    of bindings under way, all of them would be asked at every change."""

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
    """Whether `score_placements` never gives a placement less for taking more members of the gang."""

    frees_room: bool = True
    """Whether its `rescue` may name a node on which there is no room for the pod yet."""

    idle_if_skipped: bool = False
    """Whether a plugin that stepped aside in `prepare` has nothing to do at `reserve` and `prebind` either. They are
    asked of every pod, so this saves two calls a pod."""

    kinds_read: tuple[Kind, ...] = ()
    """Kinds that it reads and that a scheduler is not told of otherwise."""

    objects_read: tuple[Watch, ...] = ()
    """What else it reads, where that is only a part of a kind."""

    gang_rules: GangRules | None = None
    """How the profile schedules groups as wholes; set by one plugin of the profile. None: members are scheduled
    singly."""

    def events(self) -> Sequence[Interest] | None:
        """The events that may wake a pod that this plugin refused. None: any event."""
        return None

    def concerns(self, pod: Pod) -> bool:
        """Whether this plugin has anything to say about the pod. If not it is not asked, as if it had stepped aside in
        `prepare`. The answer depends on what cached answers depend on, because it is kept with them."""
        return True

    def looks_at_pods(self, cycle: Cycle) -> bool:
        """Whether answers about the cycle's pod that are not cached may depend on pods without affinity terms, ports
        and volumes that are on nodes. Such pods may be hidden from a pod that has their room to itself, and if no
        plugin looks at them they need not be (core/framework/row_view.py). Not asked if the pod does not concern it."""
        return True

    # ---- the queue ----

    def admit(self, pod: Pod, cluster: Cluster) -> Status | None:
        """PreEnqueue: None lets the pod into the active queue; a refusal keeps it out until one of `events` happens."""
        raise NotImplementedError

    def queue_key(self, pod: Pod, since: float) -> tuple[float, ...]:
        """QueueSort: pods with smaller keys come first. `since` is when the pod was first queued."""
        raise NotImplementedError

    # ---- the cycle ----

    def begin(self, cycle: Cycle) -> Status | None:
        """Asked before PreFilter of any plugin. A refusal ends the attempt. What is changed here of the table, for the
        sight of this one pod, `end` takes back."""
        raise NotImplementedError

    def end(self, cycle: Cycle) -> None:
        """The search is over, however it ended; called if `begin` was."""

    def prefer(self, cycle: Cycle, names: frozenset[str] | None, trial: RowTrial) -> Sequence[str] | Status:
        """Names of nodes to be tried first, in order; the first that fits ends the search. `names` are the only nodes
        that PreFilter left, None if it left all. A refusal ends the attempt."""
        raise NotImplementedError

    def next_pod(self, cluster: Cluster) -> str:
        """The uid of the waiting pod that is to be tried next, whatever the queue says; empty if there is none."""
        raise NotImplementedError

    def tend(self, cluster: Cluster, now: float) -> Iterable[Write]:
        """Asked in every step, besides attempts: what its own objects are to show. It must cost next to nothing while
        nothing has changed."""
        raise NotImplementedError

    def tends_at(self) -> float | None:
        """When `tend` wants to be asked although nothing happens; None for never."""
        return None

    def prepare(self, cycle: Cycle) -> Status | frozenset[str] | None:
        """None to go on, SKIP to step aside for this pod, a refusal, or the names of the only nodes in question."""
        raise NotImplementedError

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        """Filter: the rows of `nodes` that are refused, one Reject for each reason."""
        raise NotImplementedError

    def added(self, cycle: Cycle, pod: Pod, row: int) -> None:
        """PreFilter's AddPod: change the notes of the cycle as if another pod were on a row."""
        raise NotImplementedError

    def removed(self, cycle: Cycle, pod: Pod, row: int) -> None:
        """PreFilter's RemovePod: change the notes of the cycle as if another pod had left a row."""
        raise NotImplementedError

    def rescue(self, cycle: Cycle, refusals: Refusals) -> Rescued:
        """PostFilter: no row is feasible. Try to make room, for instance by evictions, and say what came of it."""
        raise NotImplementedError

    def prepare_scores(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        """`nodes` are the feasible rows (for a plugin whose scope is not CLUSTER: all rows, and SKIP may depend on
        the pod only)."""
        raise NotImplementedError

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        """One value per row, or a single final score if it is the same for all rows."""
        raise NotImplementedError

    def normalise(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        """Raw scores of the feasible rows to 0..100. Not overridden: they are that already."""
        raise NotImplementedError

    # ---- after the choice ----

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        """Reserve: the pod is about to get a row. A refusal takes it back and ends the attempt."""
        raise NotImplementedError

    def unreserve(self, cycle: Cycle, row: int) -> None:
        """Undo `reserve`; called even if it was not, so it must not mind."""

    def permit(self, cycle: Cycle, row: int) -> Status | Wait | None:
        """Permit: None binds now, a Wait later, a refusal gives the row back."""
        raise NotImplementedError

    def prebind(self, cycle: Cycle, row: int) -> Errand | Status | None:
        """PreBind: work that must be done before the bind, as an Errand if it takes writes; None if there is none."""
        raise NotImplementedError

    def bind(self, cycle: Cycle, row: int) -> Errand | Write | Status:
        """The write that binds, or SKIP to leave it to the next."""
        raise NotImplementedError

    def postbind(self, cycle: Cycle, row: int) -> None:
        """PostBind: the API has confirmed the bind."""
        raise NotImplementedError

    # ---- gangs ----

    def placements(self, gang: Gang, cluster: Cluster) -> Sequence[GangDomain] | Status | None:
        """The parts of the cluster that may take a gang, each as a whole; None if any nodes will do."""
        raise NotImplementedError

    def score_placements(self, gang: Gang, proposals: Sequence[Proposal], cluster: Cluster) -> Sequence[int] | Status:
        """0..100 for each placement that could take the gang."""
        raise NotImplementedError

    def rescue_gang(self, case: GangCase) -> GangRescued:
        """PodGroupPostFilter: a gang has not got its minimum. Try to make room for all of it."""
        raise NotImplementedError

    def gang_trial(self, case: GangCase) -> TrialFollower | None:
        """What follows a trial that makes room for a gang, if this plugin keeps something besides the table that pods
        give back and take; None if it does not."""
        return None


POINTS = (
    "admit", "queue_key", "next_pod", "begin", "prepare", "prefer", "filter", "rescue", "prepare_scores", "score",
    "normalise", "reserve", "permit", "prebind", "bind", "postbind", "added", "removed", "placements",
    "score_placements", "rescue_gang",
)  # fmt: skip


def takes_part(plugin: Plugin, point: str) -> bool:
    """Whether a plugin overrides a point."""
    return getattr(type(plugin), point) is not getattr(Plugin, point)
