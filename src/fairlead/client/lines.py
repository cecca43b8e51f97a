"""Lines out of a byte stream that arrives in pieces of any size: the framing of a Kubernetes watch.

A chunk may hold half a line, forty lines or a part of one that is larger than any buffer. Each byte is searched for a
newline once, so a line of several megabytes that comes in small pieces costs no more than its length.

Invariant: the lines returned, joined by newlines, are the bytes fed so far up to the last newline.
"""

from __future__ import annotations


class LineTooLong(ValueError):
    """A single line went over the limit; the stream makes no sense any more."""


class Lines:
    """Feed chunks, get the complete lines. Empty lines are left out."""

    def __init__(self, *, longest: int = 256 * 1024 * 1024) -> None:
        self._pieces: list[bytes] = []
        self._held = 0
        self._longest = longest

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes."""
        *complete, rest = chunk.split(b"\n")
        if not complete:
            self._hold(rest)
            return []
        complete[0] = b"".join((*self._pieces, complete[0]))
        self._pieces.clear()
        self._held = 0
        self._hold(rest)
        return [line for line in complete if line]

    def rest(self) -> bytes:
        """What came after the last newline."""
        return b"".join(self._pieces)

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._pieces.append(piece)
            self._held += len(piece)
        if self._held > self._longest:
            raise LineTooLong(f"a line of more than {self._longest} bytes")
