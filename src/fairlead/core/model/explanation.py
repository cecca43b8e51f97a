"""Explanation: the whole answer for one pod, from the attempt that decided. CLI, REST and Python show this one object.

`verdict` is one word; `blockers` are in the order in which they count; `waiting` says where the pod is now and what
would wake it; for a placed pod, `chosen` and `runner_up` say why it is where it is. `to_document` is the documented
JSON form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from fairlead.core.model.html_tables import html_paragraph, html_table
from fairlead.core.model.records import record
from fairlead.core.model.times import micro_timestamp

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.lack import Lack

SCHEMA = "fairlead.io/v1"


class Explained(Protocol):
    """An answer to "why?" about a pod, a group or a queue: anything with a documented JSON form."""

    def to_document(self) -> Doc: ...


@dataclass(frozen=True, slots=True)
class Blocker:
    """One reason, who says so, and of which nodes. `final`: no eviction could help. No nodes: it is about the pod.
    `eviction` says whether evictions help, as far as the attempt found out."""

    plugin: str
    reasons: tuple[str, ...]
    count: int = 0
    final: bool = False
    nodes: tuple[str, ...] = ()
    eviction: str = ""


@record(frozen=True, slots=True)
class ProtectedPod:
    """A pod or group that might have had to go: what came of it, and by which rule."""

    name: str
    priority: int
    rule: str

    def to_document(self) -> Doc:
        return {"name": self.name, "priority": self.priority, "rule": self.rule}


@dataclass(frozen=True, slots=True)
class Shortage:
    """A resource of which a pod requests more than it finds: quantities as text. `largest` and `free` are the most that
    any one of the nodes in question has, and has left."""

    resource: str
    asked: str
    largest: str
    free: str

    def to_document(self) -> Doc:
        return {"resource": self.resource, "asks": self.asked, "largest": self.largest, "mostFree": self.free}


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A node with its total and what each plugin gave it, weighted."""

    node: str
    total: int
    scores: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WaitingIn:
    """Where a pod waits."""

    queue: str
    since: float
    attempts: int
    plugins: tuple[str, ...] = ()
    wakes_on: tuple[str, ...] = ()
    retried_at: float | None = None


@record(frozen=True, slots=True)
class Explanation:
    """Why one pod is where it is, or not yet anywhere. Times are seconds since the epoch."""

    namespace: str
    name: str
    uid: str
    scheduler: str
    verdict: str
    """`Scheduled`, `Unschedulable`, `Error`, `Gated`, `Waiting` (not tried yet) or `Binding`."""
    message: str = ""
    at: float | None = None
    attempts: int = 0
    waited: float | None = None
    """Seconds from when it could first be tried to the decision; None where that is not known."""
    node: str = ""
    nominated: str = ""
    total_nodes: int = 0
    feasible_nodes: int = 0
    blockers: tuple[Blocker, ...] = ()
    chosen: ScoredNode | None = None
    runner_up: ScoredNode | None = None
    waiting: WaitingIn | None = None
    considered: tuple[ProtectedPod, ...] = ()
    """Pods that might have had to go for it, those that did among them."""
    shortages: tuple[Shortage, ...] = ()
    lacks: tuple[Lack, ...] = ()
    """What is short, by name and with amounts."""
    sequence: int | None = None
    """Of a placement, the how manieth of the scheduler it is; of a refusal, how many placements came before it."""
    extenders: tuple[Doc, ...] = ()
    """What extenders answered, as documents."""
    devices: tuple[Doc, ...] = ()
    """Of each request for devices that is not served, what there is for it, as documents."""
    traceback: str = ""
    """Where a plugin raised, if one did: the calls in its own source, as Python prints them."""

    def _repr_html_(self) -> str:
        where = f" on {self.node}" if self.node else ""
        refused = ((blocker.plugin, "; ".join(blocker.reasons), blocker.count or "") for blocker in self.blockers)
        short = ((one.resource, one.asked, one.free, one.largest) for one in self.shortages)
        scored = [one for one in (self.chosen, self.runner_up) if one is not None]
        plugins = list(dict.fromkeys(name for one in scored for name in one.scores))
        scores = ((one.node, one.total, *(one.scores.get(name, "") for name in plugins)) for one in scored)
        return (
            html_paragraph(f"{self.namespace}/{self.name}: {self.verdict}{where}", self.message)
            + html_table(("refused by", "why", "nodes"), refused)
            + html_table(("resource", "asks for", "most free", "largest node"), short)
            + html_table(("node", "total", *plugins), scores)
        )

    def to_document(self) -> Doc:
        """The JSON form; docs/explanation.md describes every field."""
        doc: Doc = {
            "apiVersion": SCHEMA,
            "kind": "Explanation",
            "pod": {"namespace": self.namespace, "name": self.name, "uid": self.uid},
            "scheduler": self.scheduler,
            "verdict": self.verdict,
            "message": self.message,
            "attempts": self.attempts,
            "nodes": {"total": self.total_nodes, "feasible": self.feasible_nodes},
        }
        if self.at is not None:
            doc["at"] = micro_timestamp(self.at)
        if self.traceback:
            doc["traceback"] = self.traceback
        if self.waited is not None:
            doc["waitedSeconds"] = round(self.waited, 6)
        if self.node:
            doc["node"] = self.node
        if self.nominated:
            doc["nominatedNode"] = self.nominated
        if self.blockers:
            doc["blockers"] = [_blocker(blocker) for blocker in self.blockers]
        if self.chosen is not None:
            doc["chosen"] = _scored(self.chosen)
        if self.runner_up is not None:
            doc["runnerUp"] = _scored(self.runner_up)
        if self.waiting is not None:
            doc["waiting"] = _waiting(self.waiting)
        if self.sequence is not None:
            doc["sequence"] = self.sequence
        if self.extenders:
            doc["extenders"] = list(self.extenders)
        if self.devices:
            doc["devices"] = list(self.devices)
        if self.considered:
            doc["considered"] = [pod.to_document() for pod in self.considered]
        if self.shortages:
            doc["shortages"] = [shortage.to_document() for shortage in self.shortages]
        if self.lacks:
            doc["lacks"] = [lack.to_document() for lack in self.lacks]
        return doc


def _blocker(blocker: Blocker) -> Doc:
    return {
        "plugin": blocker.plugin,
        "reasons": list(blocker.reasons),
        "count": blocker.count,
        "final": blocker.final,
        "eviction": blocker.eviction or ("cannot help" if blocker.final else "may help"),
        "nodes": list(blocker.nodes),
    }


def _scored(scored: ScoredNode) -> Doc:
    return {"node": scored.node, "total": scored.total, "scores": dict(scored.scores)}


def _waiting(waiting: WaitingIn) -> Doc:
    doc: Doc = {
        "queue": waiting.queue,
        "since": micro_timestamp(waiting.since),
        "attempts": waiting.attempts,
        "plugins": list(waiting.plugins),
        "wakesOn": list(waiting.wakes_on),
    }
    if waiting.retried_at is not None:
        doc["retriedAt"] = micro_timestamp(waiting.retried_at)
    return doc
