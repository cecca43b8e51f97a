"""Calls of the indexes of a Cluster, when a pod came to a row or left it: of all of them, also if one raises.

An index that was not called would count wrongly from then on, and nobody recounts it. What one raises goes to the Guard
of the scheduler (core/engine/guard.py), which checks the table: no plugin on the way may answer for it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fairlead.errors import IndexFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Index


def call_occupied(indexes: Iterable[Index], pod: Pod, row: int) -> None:
    """A pod came to a row."""
    _call_all((index.occupied for index in indexes), pod, row)


def call_vacated(indexes: Iterable[Index], pod: Pod, row: int) -> None:
    """A pod left a row."""
    _call_all((index.vacated for index in indexes), pod, row)


def _call_all(methods: Iterator[Callable[[Pod, int], None]], pod: Pod, row: int) -> None:
    try:
        for method in methods:
            method(pod, row)
    except Exception as error:
        for method in methods:  # those after the one that raised
            with suppress(Exception):
                method(pod, row)
        raise IndexFailed(f"{type(error).__name__}: {error}") from error
