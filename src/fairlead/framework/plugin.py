"""Plugin: a policy, with one optional method per extension point. Everything a plugin author overrides is here.

A method that is not overridden is a point that the plugin does not take part in. Filters and scores answer for a whole
selection of nodes at once, in columns; framework/lift.py turns a plain function of a pod and a node into such a plugin.

| method | kube-scheduler | answers |
|---|---|---|
| `admit` | PreEnqueue | may this pod enter the active queue? |
| `queue_key` | QueueSort | the order of the active queue, smallest first |
| `prepare` | PreFilter | look at the pod once; step aside, refuse, or narrow the nodes |
| `filter` | Filter | which rows are refused, and why |
| `added`, `removed` | AddPod, RemovePod | what if this other pod were (not) on that row |
| `rescue` | PostFilter | nothing fits: can room be made? |
| `prepare_scores`, `score`, `normalise` | PreScore, Score, NormalizeScore | how good is each feasible row |
| `reserve`, `unreserve` | Reserve, Unreserve | the pod is about to be placed; it is not after all |
| `permit` | Permit | bind now, later, or not at all |
| `prebind`, `bind`, `postbind` | PreBind, Bind, PostBind | the way to the API |
| `placements`, `score_placements` | PlacementGenerate, PlacementScore | where may a whole gang go, how good is it |
| `rescue_gang` | PodGroupPostFilter | a gang does not fit: can room be made for all of it? |

`scope` is a promise about what an answer depends on. It lets answers be kept and only changed rows be judged again, so
that equal pods cost nearly the same on 500 nodes and on 50,000. Saying nothing promises nothing and is always safe.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from fairlead.model.records import record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle
    from fairlead.framework.gang import GangCase, GangDomain, GangRescued, GangRules, Proposal
    from fairlead.framework.refusals import Refusals
    from fairlead.framework.sums import Sums
    from fairlead.model.events import ClusterEvent
    from fairlead.model.flow import Reply, Write
    from fairlead.model.pod import Pod
    from fairlead.model.reasons import Reject, Status, Verdict
    from fairlead.state.cluster import Cluster
    from fairlead.state.gangs import Gang
    from fairlead.state.nodes import Nodes


class Scope(Enum):
    """What a plugin's answer about a row depends on, besides the pod."""

    STATIC = "static"
    """The Node object: labels, taints, allocatable, spec."""
    ROW = "row"
    """The Node object and what lies on that node."""
    CLUSTER = "cluster"
    """Anything at all. Never remembered."""


class Hint(Enum):
    """What an event means for a pod that a plugin refused."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


HintFunction = "Callable[[Pod, object, object], Hint]"


@dataclass(frozen=True, slots=True)
class Interest:
    """An event that may turn a refusal around; `hint(pod, old, new)` looks closer. Without one, it always may."""

    event: ClusterEvent
    hint: Callable[[Pod, object, object], Hint] | None = None


@record(frozen=True, slots=True)
class Wait:
    """Permit's third answer: keep the place, bind later, give up after `timeout` seconds."""

    timeout: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rescued:
    """What an attempt to make room came to. `nominated` is the node that will be free; None leaves an earlier
    nomination as it is, and the empty string clears it. `alternatives` tells, while nothing has changed, all nodes that
    were as good, the chosen one among them, each with the pods that would have to go."""

    status: Status
    nominated: str | None = None
    victims: tuple[Pod, ...] = ()
    alternatives: Callable[[], Sequence[tuple[str, tuple[Pod, ...]]]] = tuple


class Errand(Protocol):
    """Work on the way to a binding that takes more than one write: it is started, then looked after until it says how
    it ended. `progress` is called when replies to its writes or changes of the cluster came in, and at `wake_at`."""

    def start(self, now: float) -> list[Write]: ...

    def progress(self, now: float, cluster: Cluster, replies: Sequence[Reply]) -> Status | None:
        """None while it goes on."""
        ...

    def wake_at(self) -> float | None: ...


class Plugin:
    """A policy. Subclass it, name it, override the points it has something to say at."""

    name: str = ""
    scope: Scope = Scope.CLUSTER
    reads: frozenset[str] = frozenset({"spec", "labels", "annotations", "namespace"})
    """What remembered answers read of the pod: `spec` (its shape), `node` (the one it names), `labels`,
    `annotations`, `namespace`, `name`."""

    weight: int = 1
    """What its score weighs where the configuration says nothing."""

    scores_grow: bool = False
    """Whether a placement that takes more of a gang never gets a lower score for it."""

    scores_in_range: bool = False
    """Whether what `score` says of a node is always within 0..100, so that it may be kept in a byte."""

    frees_room: bool = True
    """Whether its `rescue` may name a node on which there is no room for the pod yet."""

    gang_rules: GangRules | None = None
    """Said by the plugin that makes a profile schedule groups as wholes; None leaves their members to themselves."""

    def events(self) -> Sequence[Interest] | None:
        """What may wake a pod that this plugin refused. None: anything."""
        return None

    def epoch(self, cluster: Cluster) -> int:
        """A number that moves when all remembered answers of this plugin are void, whatever row they are about."""
        return 0

    def concerns(self, pod: Pod) -> bool:
        """Does this plugin have anything to say about pods of this shape? Asked once per shape."""
        return True

    def unmoved_by(self, pod: Pod) -> bool:
        """Once such a pod has been placed, does this plugin say of the next one like it what it said of the first?
        Asked once per signature, and only if the scope is CLUSTER and it stepped aside, or gives all rows the same; it
        need not be asked again then. Pods are alike if nothing differs but their names."""
        return False

    def facet(self, pod: Pod) -> Hashable:
        """All that this plugin reads of a pod, if that is little: pods that are equal in it share its answers, however
        they differ otherwise. Not overridden: it reads the whole signature. Only asked if the scope is not CLUSTER."""
        raise NotImplementedError

    # ---- the queue ----

    def admit(self, pod: Pod, cluster: Cluster) -> Status | None:
        raise NotImplementedError

    def queue_key(self, pod: Pod, since: float) -> tuple[float, ...]:
        raise NotImplementedError

    # ---- the cycle ----

    def prepare(self, cycle: Cycle) -> Status | frozenset[str] | None:
        """None to go on, SKIP to step aside for this pod, a refusal, or the names of the only nodes in question."""
        raise NotImplementedError

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        raise NotImplementedError

    def added(self, cycle: Cycle, pod: Pod, row: int) -> None:
        raise NotImplementedError

    def removed(self, cycle: Cycle, pod: Pod, row: int) -> None:
        raise NotImplementedError

    def rescue(self, cycle: Cycle, refusals: Refusals) -> Rescued:
        raise NotImplementedError

    def prepare_scores(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        """`nodes` are the feasible rows (for a plugin whose scope is not CLUSTER: all rows, and SKIP may depend on
        the pod only)."""
        raise NotImplementedError

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        """One value a row; or a single number if it is the same for all and needs no normalising. If everybody
        answers so, the best row is known from what is remembered."""
        raise NotImplementedError

    def normalise(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        """Raw scores of the feasible rows to 0..100. Not overridden: they are that already."""
        raise NotImplementedError

    def filter_row(self, cycle: Cycle, row: int) -> Verdict | None:
        """What `filter` says of a single row; None if it does not refuse it. Only worth writing for a plugin of scope
        ROW that every pod meets: it is asked for the one row that the last pod went to, where arrays are all overhead.
        A property test holds the two together."""
        raise NotImplementedError

    def sums(self, cycle: Cycle) -> Sums | None:
        """If all that `filter` asks of what lies on a node is that sums of requests stay within bounds: the sums, and
        trials become arithmetic (framework/sums.py). None: it asks for more."""
        return None

    def score_row(self, cycle: Cycle, row: int) -> int:
        """What `score` says of a single row; see `filter_row`."""
        raise NotImplementedError

    # ---- after the choice ----

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        raise NotImplementedError

    def unreserve(self, cycle: Cycle, row: int) -> None:
        """Undo `reserve`; called even if it was not, so it must not mind."""

    def permit(self, cycle: Cycle, row: int) -> Status | Wait | None:
        raise NotImplementedError

    def prebind(self, cycle: Cycle, row: int) -> Errand | Status | None:
        raise NotImplementedError

    def bind(self, cycle: Cycle, row: int) -> Errand | Write | Status:
        """The write that binds, or SKIP to leave it to the next."""
        raise NotImplementedError

    def postbind(self, cycle: Cycle, row: int) -> None:
        raise NotImplementedError

    # ---- gangs ----

    def placements(self, gang: Gang, cluster: Cluster) -> Sequence[GangDomain] | Status | None:
        """The parts of the cluster that may take a gang, each as a whole; None if any nodes will do."""
        raise NotImplementedError

    def score_placements(self, gang: Gang, proposals: Sequence[Proposal], cluster: Cluster) -> Sequence[int] | Status:
        """0..100 for each placement that could take the gang."""
        raise NotImplementedError

    def rescue_gang(self, case: GangCase) -> GangRescued:
        raise NotImplementedError


POINTS = (
    "admit", "queue_key", "prepare", "filter", "rescue", "prepare_scores", "score", "normalise", "reserve", "permit",
    "prebind", "bind", "postbind", "added", "removed", "placements", "score_placements", "rescue_gang",
)  # fmt: skip


def takes_part(plugin: Plugin, point: str) -> bool:
    """Whether a plugin overrides a point."""
    return getattr(type(plugin), point) is not getattr(Plugin, point)
