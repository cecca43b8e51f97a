"""RaisedErrors: what plugins raised, each with the place in their source, for the log and for explanations.

An attempt goes on with the words of an exception alone, because a condition has room for no more. The author of the
plugin needs the file and the line: they are kept here by those words, and each place is news once, however many pods
run into it.
"""

from __future__ import annotations

from traceback import StackSummary, walk_tb
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

_KEPT = 100
"""Of how many different errors the place is kept."""
_OURS = __file__.removesuffix("raised.py")
"""Calls of plugins lead through here, which is no part of what went wrong in them."""


class RaisedErrors:
    def __init__(self) -> None:
        self._traces: dict[str, str] = {}
        self._places: set[str] = set()
        self._news: list[str] = []

    def note(self, words: str, cause: BaseException) -> None:
        """An exception was raised, and these words are what becomes of it."""
        if words in self._traces:
            return
        trace = _trace(cause.__traceback__)
        if len(self._traces) >= _KEPT:
            del self._traces[next(iter(self._traces))]
        self._traces[words] = trace
        if trace and trace not in self._places:
            self._places.add(trace)
            self._news.append(f"{words}\n{trace}")

    def about(self, message: str) -> str:
        """The traceback of the error whose words are in a message; empty if there is none."""
        return next((trace for words, trace in self._traces.items() if words in message), "") if message else ""

    def take_news(self) -> list[str]:
        """Errors at places that were not reported yet, with their tracebacks."""
        taken, self._news = self._news, []
        return taken


def _trace(frames: TracebackType | None) -> str:
    """The calls that led to an exception, the innermost last, from the first one on that is the plugin's own."""
    stack = StackSummary.extract(walk_tb(frames))
    own = next((at for at, frame in enumerate(stack) if not frame.filename.startswith(_OURS)), len(stack))
    return "".join(StackSummary.from_list(stack[own:]).format()).rstrip()
