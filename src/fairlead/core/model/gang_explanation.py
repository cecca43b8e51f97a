"""GangExplanation: the whole answer for one group, from the attempt that decided.

How many of how many members found a place and where, which level of the topology lacks room and which of its domains
comes closest, and who might have been evicted and was not, with the rule that protected each. CLI, REST and Python show
this one object; docs/gangs.md describes its JSON form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model.explanation import SCHEMA, ProtectedPod, Shortage
from fairlead.core.model.times import micro_timestamp

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.lack import Lack


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain of the topology that the group names: what it is (a node label, the tier of a HyperNode), which one, and
    how many members it could take; at most so many, unless `exact`."""

    name: str
    fits: int
    level: str = ""
    exact: bool = True


@dataclass(frozen=True, slots=True)
class GangExplanation:
    namespace: str
    name: str
    api: str
    scheduler: str
    verdict: str
    """`Scheduled`, `Unschedulable`, `Preempting`, `Error`, `Gated`, `Waiting` or `Completed`."""
    message: str = ""
    at: float | None = None
    attempts: int = 0
    minimum: int = 1
    """How many are needed; 0 if that is not known yet."""
    members: int = 0
    scheduled: int = 0
    """Members that hold a place now."""
    fits: int = 0
    """Members that have a place or found one in the attempt."""
    where: Mapping[str, int] = field(default_factory=dict)
    """Node to number of members, of that attempt."""
    domains: tuple[Domain, ...] = ()
    """The best first."""
    tried: tuple[int, int] = (0, 0)
    """In how many domains of how many members were put on nodes to see how many fit."""
    blockers: tuple[tuple[str, int], ...] = ()
    """Messages of members, with how many have each."""
    considered: tuple[ProtectedPod, ...] = ()
    shortages: tuple[Shortage, ...] = ()
    lacks: tuple[Lack, ...] = ()
    """What is short for as many members as are still needed, by name and with amounts."""
    ended: tuple[int, int] = (0, 0)
    """Members that succeeded and that failed."""
    owner: str = ""
    """The owner for which the group was made, if it was made for one."""

    @property
    def summary(self) -> str:
        """One sentence."""
        needed = f"{self.minimum} {'is' if self.minimum == 1 else 'are'} needed"
        if self.verdict == "Completed":
            return f"all its pods have ended, {self.ended[0]} succeeded and {self.ended[1]} failed"
        if self.verdict == "Scheduled":
            return f"{self.scheduled} of {self.members} members have places, {needed}"
        if not self.members:
            return f"it has no pods, {needed}"
        if self.verdict == "Gated":
            return self._known()
        if self.domains and self.domains[0].fits < self._lacking:
            return self._closest(self.domains[0])
        return f"{self.fits} of {self.members} members fit, {needed}"

    def _known(self) -> str:
        """Before it may queue: who is there, and whether anybody knows how many must be."""
        known = f"{self.members} {'member is' if self.members == 1 else 'members are'} known"
        return f"{known}, {self.minimum} needed" if self.minimum else f"{known}; how many are needed is not"

    @property
    def _lacking(self) -> int:
        return self.minimum - self.scheduled

    def _closest(self, best: Domain) -> str:
        """`needs 4 in one rack; best rack r2 has room for 3`, with the label in full where its name is cut short."""
        short = best.level.rpartition("/")[2]
        level = short if short == best.level else f"{short} ({best.level})"
        return f"needs {self._lacking} in one {level}; best {short} {best.name} has room for {best.fits}"

    def to_document(self) -> Doc:
        doc: Doc = {
            "apiVersion": SCHEMA,
            "kind": "GangExplanation",
            "podGroup": {
                "apiGroup": self.api,
                "namespace": self.namespace,
                "name": self.name,
                **({"owner": self.owner} if self.owner else {}),
            },
            "scheduler": self.scheduler,
            "verdict": self.verdict,
            "summary": self.summary,
            "message": self.message,
            "attempts": self.attempts,
            "members": {
                "known": self.members,
                "needed": self.minimum or None,
                "placed": self.scheduled,
                "fitting": self.fits,
                **({"succeeded": self.ended[0], "failed": self.ended[1]} if any(self.ended) else {}),
            },
            "where": dict(self.where),
        }
        if self.at is not None:
            doc["at"] = micro_timestamp(self.at)
        if self.domains:
            doc["topology"] = {
                "level": self.domains[0].level,
                "tried": self.tried[0],
                "of": self.tried[1],
                "domains": [_domain(domain, self.domains[0].level) for domain in self.domains],
            }
        if self.blockers:
            doc["blockers"] = [{"message": text, "members": count} for text, count in self.blockers]
        if self.considered:
            doc["considered"] = [spared.to_document() for spared in self.considered]
        if self.shortages:
            doc["shortages"] = [shortage.to_document() for shortage in self.shortages]
        if self.lacks:
            doc["lacks"] = [lack.to_document() for lack in self.lacks]
        return doc


def _domain(domain: Domain, level: str) -> Doc:
    """Of one domain. Its level is named if it is not that of the best one."""
    doc: Doc = {"name": domain.name, "fits": domain.fits}
    if domain.level != level:
        doc["level"] = domain.level
    if not domain.exact:
        doc["atMost"] = True
    return doc
