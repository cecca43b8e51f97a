"""When the interpreter looks for cycles: hardly ever while a process loads, and rarely later."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fairlead.runtime.collecting import ALLOCATIONS_OF_EXPERIMENTS, collect_rarely, loading


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_what_is_loaded_is_not_examined_meanwhile_nor_later() -> None:
    collections = gc.get_stats()[0]["collections"]
    with loading():
        loaded = [[number] for number in range(300_000)]
        assert gc.get_stats()[0]["collections"] == collections
    assert gc.get_freeze_count() > len(loaded)


def test_a_load_that_fails_leaves_the_collection_as_one_that_succeeds() -> None:
    collect_rarely()
    rarely = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ValueError, match="torn"), loading():
        raise ValueError("torn")
    assert gc.get_threshold() == rarely
    assert gc.isenabled()


def test_records_of_a_whole_experiment_are_not_examined_while_it_is_played() -> None:
    collect_rarely(ALLOCATIONS_OF_EXPERIMENTS)
    collections = gc.get_stats()[0]["collections"]
    lives = [[number] for number in range(1_000_000)]
    assert gc.get_stats()[0]["collections"] == collections
    assert len(lives) == 1_000_000
    assert gc.isenabled()
