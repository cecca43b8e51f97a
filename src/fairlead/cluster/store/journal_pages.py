"""Rows of a journal in the raw pages of its files, for what SQLite cannot reach any more.

The format is that of https://www.sqlite.org/fileformat2.html: a leaf page of a table begins with 13, has its number of
cells at 3 and their places from 8 on; a cell is the size of its record, its row number, the record, and, if that is too
long for the page, the number of the page where it goes on. Nothing here trusts what it reads: a row counts if its
checksum is right.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.cluster.store.journal_format import DamagedRow, Row, judge

_LEAF = 13
_USUAL_SIZE = 4096
_FRAMES_FROM, _FRAME_HEAD = 32, 24
_LARGEST = 1 << 26
"""Bytes of a record; more is a wrong number."""
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}
"""How many bytes an integer of a type has; 8 and 9 are the numbers 0 and 1."""


def rows_in_pages(database: bytes, log: bytes) -> Iterator[Row]:
    """Every row of either file that is whole, in no order; a row may come twice."""
    size = int.from_bytes(database[16:18], "big")
    size = 65536 if size == 1 else size
    if size < 512 or size & (size - 1):
        size = _USUAL_SIZE
    pages = {1 + start // size: database[start : start + size] for start in range(0, len(database), size)}
    logged = [
        (int.from_bytes(log[start : start + 4], "big"), log[start + _FRAME_HEAD :][:size])
        for start in range(_FRAMES_FROM, len(log) - size - _FRAME_HEAD + 1, size + _FRAME_HEAD)
    ]
    latest = pages | dict(logged)
    for overflowing in (latest, pages):  # a row of the file goes on in the file, one of the log perhaps in the log
        for page in (*pages.values(), *(page for _, page in logged)):
            yield from _rows(page, overflowing, size)


def _rows(page: bytes, pages: dict[int, bytes], size: int) -> Iterator[Row]:
    if not page or page[0] != _LEAF:
        return
    for index in range(int.from_bytes(page[3:5], "big")):
        at = int.from_bytes(page[8 + 2 * index : 10 + 2 * index], "big")
        try:
            row = _row(page, at, pages, size)
        except (IndexError, KeyError, ValueError):
            continue
        if row is not None:
            yield row


def _row(page: bytes, at: int, pages: dict[int, bytes], size: int) -> Row | None:
    length, at = _varint(page, at)
    version, at = _varint(page, at)
    record = _record(page, at, length, pages, size)
    head, position = _varint(record, 0)
    types = []
    while position < head:
        kind, position = _varint(record, position)
        types.append(kind)
    if len(types) != 7 or types[0] != 0:
        return None
    values: list[object] = [version]
    for kind in types[1:]:
        count = (kind - 12) // 2 if kind >= 12 else _INTEGERS[kind]
        part = record[position : position + count]
        values.append(part if kind >= 12 else int.from_bytes(part, "big", signed=True) + (kind == 9))
        position += count
    row = judge(tuple(values[:6]))
    return None if isinstance(row, DamagedRow) else row


def _record(page: bytes, at: int, length: int, pages: dict[int, bytes], size: int) -> bytes:
    if length > _LARGEST:
        raise ValueError(length)
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    if length <= most:
        return page[at : at + length]
    local = least + (length - least) % (size - 4)
    if local > most:
        local = least
    parts, left = [page[at : at + local]], length - local
    following = int.from_bytes(page[at + local : at + local + 4], "big")
    while left > 0:
        further = pages[following]
        parts.append(further[4 : 4 + min(left, size - 4)])
        left -= size - 4
        following = int.from_bytes(further[:4], "big")
    return b"".join(parts)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(9):
        byte = data[at + count]
        if count == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at + count + 1
    raise ValueError(at)
