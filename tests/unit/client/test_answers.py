"""Answers are read from a stream in any pieces, and what is no answer is said so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.client.answers import Answer, AnswerReader, BadAnswer

PLAIN = b"HTTP/1.1 201 Created\r\nDate: today\r\nContent-Length: 7\r\n\r\n{'a':1}"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Content-Length: 5\r\n\r\n"
    b"3\r\n{'a\r\n4;note=x\r\n':1}\r\n0\r\nTrailer: t\r\n\r\n"
)
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + PLAIN
BUSY = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 3 \r\ncontent-length: 0\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
NO_REASON = b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"

EXPECTED = {
    PLAIN: Answer(201, b"{'a':1}"),
    CHUNKED: Answer(200, b"{'a':1}"),
    INTERIM: Answer(201, b"{'a':1}"),
    BUSY: Answer(429, b"", "3"),
    EMPTY: Answer(204, b""),
    NO_REASON: Answer(200, b""),
}


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@given(st.lists(st.tuples(st.sampled_from([*EXPECTED]), st.lists(st.integers(1, 200))), max_size=4))
def test_every_answer_is_found_once_however_its_bytes_are_cut(
    loop: asyncio.AbstractEventLoop, answers: list[tuple[bytes, list[int]]]
) -> None:
    reader = AnswerReader(loop)
    for text, cuts in answers:
        marks = [0, *sorted({cut for cut in cuts if cut < len(text)}), len(text)]
        found = [reader.feed(text[start:end]) for start, end in pairwise(marks)]
        assert found == [None] * (len(found) - 1) + [EXPECTED[text]]
        assert reader.keeps


def test_an_answer_without_a_length_ends_with_the_stream(loop: asyncio.AbstractEventLoop) -> None:
    reader = AnswerReader(loop)
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nab") is None
    assert reader.feed(b"cd") is None
    assert reader.end() == Answer(200, b"abcd")
    assert not reader.keeps


@pytest.mark.parametrize("text", [PLAIN, CHUNKED])
def test_a_stream_that_ends_too_early_completes_nothing(loop: asyncio.AbstractEventLoop, text: bytes) -> None:
    reader = AnswerReader(loop)
    assert reader.feed(text[:-3]) is None
    assert reader.end() is None


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"HTTP/1.1 200 OK\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", True),
    ],
)
def test_whether_another_request_may_follow(loop: asyncio.AbstractEventLoop, head: bytes, keeps: bool) -> None:
    reader = AnswerReader(loop)
    assert reader.feed(head + b"Content-Length: 0\r\n\r\n") == Answer(200, b"")
    assert reader.keeps is keeps


@pytest.mark.parametrize("text", [PLAIN, CHUNKED])
def test_no_request_follows_an_answer_with_more_behind_it(loop: asyncio.AbstractEventLoop, text: bytes) -> None:
    reader = AnswerReader(loop)
    assert reader.feed(text + NO_REASON) == EXPECTED[text]
    assert not reader.keeps


@pytest.mark.parametrize(
    "text",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 99 What\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
    ],
)
def test_what_is_no_answer_is_said_so(loop: asyncio.AbstractEventLoop, text: bytes) -> None:
    with pytest.raises(BadAnswer):
        AnswerReader(loop).feed(text)
