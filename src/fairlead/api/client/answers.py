"""Answers out of a byte stream: HTTP/1.1 responses to requests that are made one at a time on a connection.

Only what a writer has to know of an answer is read: its status, where its body ends, whether the connection stays open
and when to come back. The answers to writes are small and come by the thousand, and a general response with all its
headers costs several times as much.

Invariant: `feed` returns each answer once, with the piece of the stream that completes it.
"""

from __future__ import annotations

import re
from collections.abc import Generator

from fairlead.model.records import record

_FIELDS = re.compile(rb"\r\n(content-length|transfer-encoding|connection|retry-after):[ \t]*([^\r\n]*)", re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: |\r|$)")
_CHUNK = re.compile(rb"[0-9a-fA-F]{1,15}(?=[; \t]|$)")
_LONGEST_LINE = 64 * 1024
_LINE, _HEAD = b"\r\n", b"\r\n\r\n"

_Fields = dict[bytes, bytes]
_Reading = Generator[None, bytes, "Answer"]


class BadAnswer(ValueError):
    """What came is no HTTP response."""


@record(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    retry_after: str = ""


class AnswerReader:
    """The answers that come over one connection. `keeps` tells whether another request may follow the last one."""

    def __init__(self) -> None:
        self.keeps = True
        self._held = bytearray()
        self._reading: _Reading | None = None

    def feed(self, data: bytes) -> Answer | None:
        """The answer that `data` completes. No data is the end of the stream, which may complete one too."""
        if self._reading is None:
            if (whole := self._whole(data)) is not None:
                return whole
            self._reading = self._read()
            next(self._reading)
        try:
            self._reading.send(data)
        except StopIteration as read:
            answer: Answer = read.value
            self._reading = None
            if self._held:
                self.keeps = False  # there is more than was asked for
            return answer
        return None

    def _whole(self, data: bytes) -> Answer | None:
        """The answer that comes in one piece, as those to writes nearly always do."""
        end = data.find(_HEAD)
        if end < 0:
            return None
        status, fields = self._head(data[:end])
        length = fields.get(b"content-length", b"")
        body = data[end + 4 :]
        if status < 200 or b"transfer-encoding" in fields or not length.isdigit() or int(length) != len(body):
            return None
        return Answer(status, body, _retry_after(fields))

    def _head(self, head: bytes) -> tuple[int, _Fields]:
        first = _STATUS.match(head)
        if first is None:
            raise BadAnswer(f"no HTTP response: {head[:80]!r}")
        fields: _Fields = {name.lower(): value.strip() for name, value in _FIELDS.findall(head)}
        options = fields.get(b"connection", b"").lower()
        self.keeps = b"keep-alive" in options if first[1] == b"0" else b"close" not in options
        return int(first[2]), fields

    def _read(self) -> _Reading:
        status = 100
        while status < 200:  # interim answers announce the one that counts
            status, fields = self._head(bytes((yield from self._until(_HEAD))))
        body = yield from self._body(status, fields)
        return Answer(status, body, _retry_after(fields))

    def _body(self, status: int, fields: _Fields) -> Generator[None, bytes, bytes]:
        if status in (204, 304):
            return b""
        if b"transfer-encoding" in fields:
            if fields[b"transfer-encoding"].lower() != b"chunked":
                raise BadAnswer(f"unknown transfer encoding {fields[b'transfer-encoding']!r}")
            return (yield from self._chunks())
        length = fields.get(b"content-length")
        if length is None:
            return (yield from self._rest())
        if not length.isdigit():
            raise BadAnswer(f"no length of a body: {length[:80]!r}")
        return bytes((yield from self._exactly(int(length))))

    def _chunks(self) -> Generator[None, bytes, bytes]:
        body = bytearray()
        while True:
            line = yield from self._until(_LINE)
            size = _CHUNK.match(line)
            if size is None:
                raise BadAnswer(f"no length of a chunk: {bytes(line[:80])!r}")
            length = int(size[0], 16)
            if not length:
                break
            body += yield from self._exactly(length)
            if (yield from self._exactly(2)) != _LINE:
                raise BadAnswer("a chunk is longer than its length")
        while (yield from self._until(_LINE)):
            pass  # fields after the body say nothing to us
        return bytes(body)

    def _rest(self) -> Generator[None, bytes, bytes]:
        """Everything up to the end of the stream."""
        self.keeps = False
        while data := (yield):
            self._held += data
        return bytes(self._taken(len(self._held)))

    def _until(self, mark: bytes) -> Generator[None, bytes, bytearray]:
        """What comes before a mark, which is taken too."""
        searched = 0
        while (at := self._held.find(mark, searched)) < 0:
            if len(self._held) > _LONGEST_LINE:
                raise BadAnswer(f"no HTTP response: {bytes(self._held[:80])!r}")
            searched = max(0, len(self._held) - len(mark) + 1)
            self._held += yield
        found = self._taken(at)
        del self._held[: len(mark)]
        return found

    def _exactly(self, length: int) -> Generator[None, bytes, bytearray]:
        while len(self._held) < length:
            self._held += yield
        return self._taken(length)

    def _taken(self, length: int) -> bytearray:
        taken = self._held[:length]
        del self._held[:length]
        return taken


def _retry_after(fields: _Fields) -> str:
    return fields.get(b"retry-after", b"").decode("latin-1")
