"""What goes in and out of everything that acts: documents, changes, writes, replies, and the Controller.

A Controller neither waits nor looks at a clock nor talks to anybody. It is given what changed and what became of its
earlier writes, and returns the writes it wants; a runtime (live or virtual) does the rest. That is why the same
scheduler, job controller or simulated kubelet runs against a real cluster, an embedded one and a simulation.

Invariant: a Doc that was handed out is never modified by anybody. Who wants another one makes a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from fairlead.core.model.records import record

if TYPE_CHECKING:
    from fairlead.core.model.kinds import Kind
    from fairlead.errors import ApiError

Doc = dict[str, Any]
"""A Kubernetes object as a plain, lossless dict; only the edge and the controllers handle it."""


class Happened(Enum):
    """What a Change says of its object. (Values are those of a watch event.)"""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


_DELETED = Happened.DELETED
"""Looking it up on the Enum takes ten times as long before Python 3.12, and every change is asked."""


class Verb(Enum):
    """What a Write requests."""

    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"


class PatchType(Enum):
    """The dialects of PATCH, by their media types."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@record(frozen=True, slots=True)
class Change:
    """An object appeared, changed or went away. `doc` is its newest state, for DELETED the last one."""

    happened: Happened
    kind: Kind
    doc: Doc

    @property
    def gone(self) -> bool:
        """Whether the object went away."""
        return self.happened is _DELETED


@record(frozen=True, slots=True, eq=False)
class Write:
    """A request to the API. `body` is the object, the patch or the DeleteOptions; `subresource` as in the URL
    (`status`, `binding`, `scale`, `eviction`). `params` are further query parameters (`fieldManager`, `dryRun`).
    `note` is the writer's own and comes back in the Reply untouched. `conforms` promises that the body is as a server
    would keep it (types right, nothing empty or null that is left out then) and never changes: an embedded Store then
    takes it as it is."""

    verb: Verb
    kind: Kind
    namespace: str
    name: str
    body: Any = None
    subresource: str = ""
    patch_type: PatchType = PatchType.MERGE
    params: Mapping[str, str] = field(default_factory=dict)
    note: Any = None
    conforms: bool = False


@record(frozen=True, slots=True)
class Reply:
    """What became of a Write: the stored document (for a DELETE: the object's last state or a Status), or the error."""

    write: Write
    doc: Doc | None
    error: ApiError | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """What a Controller subscribes to: a kind, optionally narrowed by selectors as in a list request. Of an
    `optional` one there are none if we may not read it; without, a controller waits until it may. If only a `part` of
    the controller needs it, that part waits: the runtime calls the controller's `hold` with the names of such parts."""

    kind: Kind
    field_selector: str = ""
    label_selector: str = ""
    namespace: str = ""
    optional: bool = False
    part: str = ""


class DocView(Protocol):
    """Read access to current documents: the Store itself when embedded, the reflector's mirror on a real cluster."""

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        """The object, or None. `namespace` is empty for cluster-scoped kinds."""
        ...

    def list(self, kind: Kind, namespace: str = "") -> Iterable[Doc]:
        """All objects of a kind, in one namespace or (empty) in all, in no particular but a repeatable order."""
        ...


class Controller(Protocol):
    """Everything that acts. The runtime promises: the first step brings all objects of all watches as ADDED; later
    steps bring changes in the order of each kind's watch; each Write gets exactly one Reply, in a later step; two
    Writes to one object are performed in the order in which they were returned."""

    name: str

    @property
    def watches(self) -> Sequence[Watch]:
        """What it subscribes to. It may grow from step to step; the next step then brings all objects of what was
        added, unless the API does not answer within some seconds."""
        ...

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        """Take in what happened and say what shall be done. `now` is seconds since the epoch."""
        ...

    def wake_at(self) -> float | None:
        """When to be called even if nothing happens; None for never; a time not after `now` for at once."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    """A Controller whose steps make several attempts. While `interrupted_by` holds something, a step ends after the
    attempt that is under way; a runtime puts its waiting questions there."""

    interrupted_by: Sized


class OutsideWork(Protocol):
    """What threads do for a Controller between its steps, such as a request to an extender."""

    @property
    def under_way(self) -> bool:
        """Whether a job has not ended."""
        ...

    def wait(self) -> None:
        """Return when all jobs that have begun have ended."""
        ...


@runtime_checkable
class WorksOutside(Protocol):
    """A Controller for which threads work between its steps. Its `wake_at` is the time at which it looks at what became
    of that work; on virtual time the work has ended by then, however long it took."""

    @property
    def outside(self) -> Sequence[OutsideWork]: ...
