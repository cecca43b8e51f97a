"""Trail: choices that a recorded round leaves open, and the way back from those that led nowhere.

A trial that comes to nothing leaves no name, so the steps of a recording do not show which of several came first. Such
a choice is made at a step of the recording, among options of which the likeliest is given first. If the replay parts
from the recording later on, the latest choice is ruled out at its step, and the round is replayed; where all options
are ruled out, the choice before was wrong. If all steps were followed and what was said in the end differs, those it is
about are to be given their options in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple, TypeVar

Option = TypeVar("Option", bound=Hashable)


class Lost(Exception):
    """All options have led nowhere."""


class _Choice(NamedTuple):
    about: str
    at: int
    among: Hashable
    """Distinguishes walks that are about the same and begin at the same step."""
    option: Hashable


class Trail:
    def __init__(self) -> None:
        self._ruled_out: set[_Choice] = set()
        self._path: list[_Choice] = []
        self._variants: Counter[str] = Counter()

    def variant(self, about: str) -> int:
        """How often another order was requested."""
        return self._variants[about]

    def start(self) -> None:
        """The round begins anew; what was ruled out stays so."""
        self._path.clear()

    def choose(self, about: str, at: int, among: Hashable, options: Sequence[Option]) -> Option:
        """The likeliest option that is not ruled out at a step. If the choice before was for the same step, it came to
        nothing at all, and it does not matter when it is made."""
        if len(options) == 1:
            return options[0]
        for option in options:
            choice = _Choice(about, at, among, option)
            if choice not in self._ruled_out:
                if self._path and self._path[-1][:3] == choice[:3]:
                    self._path.pop()
                self._path.append(choice)
                return option
        raise Lost

    def turn_back(self) -> bool:
        """Rule out the latest choice; what was ruled out at later steps is open again. Whether there was a choice."""
        if not self._path:
            return False
        latest = self._path[-1]
        self._ruled_out = {known for known in self._ruled_out if known.at <= latest.at} | {latest}
        return True

    def vary(self, blamed: Collection[str]) -> bool:
        """Ask for other orders, and forget what was ruled out about the same. Whether there was a choice about it."""
        concerned = {choice.about for choice in self._path} & set(blamed)
        self._variants.update(concerned)
        self._ruled_out = {known for known in self._ruled_out if known.about not in concerned}
        return bool(concerned)
