"""A record of what clients were answered and told, from which the checker makes one history.

A state is what an object was at a version: its uid, its content and its label. Everything is of one kind in one
namespace, so that a name is an object and versions are those of one sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class State:
    version: int
    uid: str
    content: str
    label: str


@dataclass(frozen=True, slots=True)
class Wrote:
    """A write that was acknowledged. `expected` is the version that it was conditional on, 0 for none. A deletion
    has no state, but the uid of what it deleted. `life` is the number of restarts before it."""

    name: str
    state: State | None
    life: int = 0
    expected: int = 0
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """A write that was sent, whatever came of it: the content that it would leave, None for a deletion."""

    name: str
    content: str | None


@dataclass(frozen=True, slots=True)
class Read:
    """An object was read, None if it was not there, when this version of it had been acknowledged to somebody."""

    name: str
    state: State | None
    at_least: int


@dataclass(frozen=True, slots=True)
class Told:
    """An event; a bookmark has no name."""

    type: str
    name: str
    state: State


@dataclass(slots=True)
class Session:
    """What one watcher saw from a list on, over all its connections: each went on from the version of the one before.
    `life` is the number of restarts before it."""

    label: str
    version: int
    listed: dict[str, State]
    life: int
    told: list[Told] = field(default_factory=list)
    end: int = 0
    """The version that it had time to see; 0 if it was cut off for good."""

    @property
    def reached(self) -> int:
        return max([self.version, *(told.state.version for told in self.told)])


@dataclass(slots=True)
class Record:
    wrote: list[Wrote] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    killed_at: list[int] = field(default_factory=list)
    """The highest version that was acknowledged or told before each kill."""
