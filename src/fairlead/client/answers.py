"""Answers out of a byte stream: HTTP/1.1 responses to requests that are made one at a time on a connection.

aiohttp's compiled parser reads them. Of a response only what a writer has to know is kept: its status, its body,
whether the connection stays open and when to come back; aiohttp's own response object costs several times as much, and
the answers to writes come by the thousand.

Invariant: `feed` returns each answer once, with the piece of the stream that completes it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import ClientPayloadError
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpProcessingError, HttpResponseParser

from fairlead.core.model.records import record

if TYPE_CHECKING:
    from aiohttp import StreamReader
    from aiohttp.http import RawResponseMessage

_WHOLE = 2**30
"""The parser asks to pause the stream when so many bytes of a body wait. None has so many: it is handed out whole."""


class BadAnswer(ValueError):
    """What came is no HTTP response."""


@record(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    retry_after: str = ""


class AnswerReader:
    """The answers that come over one connection. `keeps` says whether another request may follow the last one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.keeps = True
        self._parser = HttpResponseParser(
            BaseProtocol(loop), loop, _WHOLE, response_with_body=True, read_until_eof=True, auto_decompress=False
        )
        self._under_way: tuple[RawResponseMessage, StreamReader] | None = None

    def feed(self, data: bytes) -> Answer | None:
        """The answer that `data` completes."""
        try:
            found, _, _ = self._parser.feed_data(data)
        except HttpProcessingError as error:
            raise BadAnswer(f"no HTTP response: {' '.join(error.message.split())}") from error
        for head, body in found:
            if self._under_way is not None:
                self.keeps = False  # there is more than was requested
            elif head.code >= 200:  # others announce the one that counts
                self._under_way = head, body
        return self._completed()

    def end(self) -> Answer | None:
        """The answer that the end of the stream completes: one whose length was not given."""
        try:
            self._parser.feed_eof()
            return self._completed()
        except (HttpProcessingError, ClientPayloadError, BadAnswer):
            return None  # it ended too early

    def _completed(self) -> Answer | None:
        if self._under_way is None:
            return None
        head, body = self._under_way
        if (error := body.exception()) is not None:
            raise BadAnswer(str(error)) from error
        if not body.is_eof():
            return None
        self._under_way = None
        self.keeps = self.keeps and not head.should_close
        return Answer(head.code, body.read_nowait(), head.headers.get("Retry-After", ""))
