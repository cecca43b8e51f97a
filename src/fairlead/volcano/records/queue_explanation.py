"""The sums of a queue and the checks of a group, as one answer each: what `fairlead queue explain` and `fairlead
explain job|podgroup` show of Volcano profiles. docs/volcano.md describes their JSON forms.

Amounts are quantities as text, so that what is shown is what is meant; None is no limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model.explanation import SCHEMA

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.gang_explanation import GangExplanation

Amount = str | None


@dataclass(frozen=True, slots=True)
class Holder:
    """A group of the queue: what it has, and what is kept for it because it was let in."""

    name: str
    phase: str
    allocated: Mapping[str, str]
    kept: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class QueueExplanation:
    """`sums` maps a resource to the lines of its sum; `why` says in sentences what the last lines come from."""

    name: str
    state: str
    plugin: str
    weight: int
    parent: str = ""
    share: float | None = None
    place: int | None = None
    sums: Mapping[str, Mapping[str, Amount]] = field(default_factory=dict)
    holders: tuple[Holder, ...] = ()
    waiting: tuple[str, ...] = ()
    """Groups that wait, in the order of their turns."""
    why: tuple[str, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)
    """For whom groups of the queue were made, where their names do not say so."""

    def to_document(self) -> Doc:
        return {
            "apiVersion": SCHEMA,
            "kind": "QueueExplanation",
            "queue": self.name,
            "state": self.state,
            "weight": self.weight,
            "parent": self.parent,
            "plugin": self.plugin,
            "share": self.share,
            "place": self.place,
            "sums": {resource: dict(lines) for resource, lines in self.sums.items()},
            "holders": [
                {"group": one.name, "phase": one.phase, "allocated": dict(one.allocated), "kept": dict(one.kept)}
                for one in self.holders
            ],
            "waiting": list(self.waiting),
            "why": list(self.why),
            **({"owners": dict(self.owners)} if self.owners else {}),
        }


@dataclass(frozen=True, slots=True)
class QueueCheck:
    """One question on the way to a place: `passed` is None where it was not asked yet."""

    name: str
    passed: bool | None
    text: str

    def to_document(self) -> Doc:
        return {"check": self.name, "passed": self.passed, "text": self.text}


@dataclass(frozen=True, slots=True)
class JobExplanation:
    """A group of a Volcano profile: all that is said of any group, its queue, and the checks in their order."""

    gang: GangExplanation
    queue: str
    phase: str
    checks: tuple[QueueCheck, ...]
    place: int | None = None
    waiting: int = 0
    before: tuple[str, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)
    """For whom groups before it were made, where their names do not say so."""

    @property
    def blocker(self) -> QueueCheck | None:
        """The first check that did not pass."""
        return next((check for check in self.checks if check.passed is False), None)

    def to_document(self) -> Doc:
        doc = self.gang.to_document()
        doc["queue"] = {"name": self.queue, "place": self.place, "waiting": self.waiting, "before": list(self.before)}
        if self.owners:
            doc["queue"]["owners"] = dict(self.owners)
        doc["phase"] = self.phase
        doc["checks"] = [check.to_document() for check in self.checks]
        return doc
