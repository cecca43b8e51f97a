"""Framing of watch streams."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.client.lines import Lines, LineTooLong


@given(st.lists(st.binary().map(lambda b: b.replace(b"\n", b"")), max_size=8), st.data())
def test_any_split_of_a_stream_gives_the_same_lines(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    framer, got = Lines(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += framer.feed(stream[start:end])
    assert got == [line for line in lines if line]
    assert framer.rest() == b""


def test_an_unfinished_line_is_kept_back() -> None:
    framer = Lines()
    assert framer.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    assert framer.rest() == b'{"b"'


def test_a_line_without_end_is_refused() -> None:
    framer = Lines(longest=10)
    framer.feed(b"12345")
    with pytest.raises(LineTooLong):
        framer.feed(b"678901")
