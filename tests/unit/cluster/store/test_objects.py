from __future__ import annotations

from fairlead.cluster.store.objects import DecodedCache, Record, encode


def _record(number: int) -> Record:
    doc = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{number}"}}
    return Record("default", f"p-{number}", number, None, doc)


def test_a_record_that_leaves_the_cache_is_kept_as_bytes() -> None:
    cache, records = DecodedCache(2), [_record(number) for number in range(4)]
    docs = [record.doc for record in records]
    for record in records:
        cache.keep(record)
    assert [record.decoded is None for record in records] == [True, True, False, False]
    assert [record.doc for record in records] == docs
    assert [record.raw for record in records] == [encode(doc) for doc in docs]


def test_a_document_comes_back_to_the_cache_when_it_is_read() -> None:
    cache, record = DecodedCache(1), _record(1)
    cache.keep(record)
    cache.keep(_record(2))
    assert record.decoded is None
    assert cache.doc(record) is cache.doc(record)


def test_records_that_were_replaced_leave_room_for_those_in_use() -> None:
    cache, kept = DecodedCache(8), _record(0)
    cache.keep(kept)
    for number in range(1, 20):
        cache.keep(_record(number))
    assert kept.decoded is not None
