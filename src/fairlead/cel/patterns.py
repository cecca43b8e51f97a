"""Regular expressions that somebody else writes: matched in linear time, with the syntax and the verdicts of Go.

The patterns of device selectors, of CustomResourceDefinitions and of expressions come from anybody who may create an
object. Python's `re` needs exponential time for some and holds the interpreter lock meanwhile, so that one claim
stops a scheduler. RE2 is what Go's package reimplements: it has the same syntax, and its complaints are reworded here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

_USUAL, _MOST = 1 << 23, 1 << 28
"""Bytes of memory for one pattern. The larger is needed to accept what Go accepts, and only given where it is."""
_IN_GO = {
    "invalid character class": "invalid character class",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}
"""Complaints of RE2 that Go words differently."""
_TOO_LARGE = "pattern too large"
_NOT_IN_GO = re.compile(
    r"(?P<byte>\\C)|\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]"  # other escapes, quoted text, sets of characters
    r"|(?P<behind>\(\?<[=!][^>]*>?)|(?P<name>\(\?P?<[^>]*[^\x00-\x7f>][^>]*>)",
    re.DOTALL,
)
"""What RE2 has and Go has not: `\\C`, one byte, and names beyond ASCII; and look-behind, which it words differently."""
_GO_SAYS = {"byte": "invalid escape sequence", "behind": "invalid named capture", "name": "invalid named capture"}


class BadPattern(ValueError):
    """A text that is no regular expression; the message is Go's."""


class Pattern:
    """A compiled regular expression. Positions count characters."""

    def __init__(self, text: str) -> None:
        for found in _NOT_IN_GO.finditer(text):
            if found.lastgroup is not None:
                raise BadPattern(f"error parsing regexp: {_GO_SAYS[found.lastgroup]}: `{found[0]}`")
        self._compiled = _compiled(text)

    def matches(self, text: str) -> bool:
        """Whether it matches somewhere in the text."""
        return self._compiled.search(_encodable(text)) is not None

    def is_all_of(self, text: str) -> bool:
        """Whether it matches the whole text."""
        return self._compiled.fullmatch(_encodable(text)) is not None

    def find(self, text: str) -> str:
        """The first match, or the empty text."""
        found = self._compiled.search(_encodable(text))
        return str(found.group(0)) if found else ""

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """The matches one after another, at most `limit` of them unless it is negative."""
        found = []
        if limit != 0:
            for match in self._compiled.finditer(_encodable(text)):
                found.append(str(match.group(0)))
                if len(found) == limit:
                    break
        return found


@lru_cache(maxsize=512)
def pattern(text: str) -> Pattern:
    """The pattern that a text is. Raises BadPattern."""
    return Pattern(text)


def pattern_fault(text: str) -> str:
    """What is wrong with a regular expression, in Go's words; empty if nothing is."""
    try:
        pattern(text)
    except BadPattern as fault:
        return str(fault)
    return ""


def _compiled(text: str) -> Any:
    try:
        try:
            return re2.compile(_encodable(text), _options(_USUAL))
        except re2.error as error:
            if _TOO_LARGE not in _words(error):
                raise
            return re2.compile(_encodable(text), _options(_MOST))
    except re2.error as error:
        raise BadPattern(f"error parsing regexp: {_as_go(_words(error))}") from None


def _options(memory: int) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    return options


def _encodable(text: str) -> str:
    """A lone surrogate, which JSON may hold and UTF-8 may not, counts as an unknown character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _words(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _as_go(words: str) -> str:
    said, colon, shown = words.partition(": ")
    said = _IN_GO.get(said, said)
    return f"{said}: `{shown}`" if colon else f"{said}: ``" if said.startswith("trailing") else said
