"""sentences_of: what a run says of jobs whose pods held places and waited for the rest of their gang.

A run that ends in such a deadlock looks like one whose cluster is busy. So its jobs are named, with what they held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def sentences_of(about: Mapping[str, Any]) -> list[str]:
    """The sentences of a run, by what stands in its `run.json`; none if no pod waited while it held a place."""
    found = []
    if deadlock := about.get("deadlock"):
        found.append(f"deadlock: {_in_words(deadlock)}")
    hours = (("GPU", about.get("waiting_gpu_hours")), ("core", about.get("waiting_cpu_hours")))
    lost = next(((name, amount) for name, amount in hours if amount), None)
    if lost is not None:
        found.append(f"{lost[1]:.2f} {lost[0]} hours were held by pods whose work waited for the rest of their job")
    return found


def _in_words(waits: Sequence[Mapping[str, Any]]) -> str:
    named = [f"{one['job']} ({one['runs']} of the {one['needs']} pods that it needs run)" for one in waits]
    if len(named) == 1:
        return f"{named[0]} holds places and waits for pods that get none"
    return f"{', '.join(named[:-1])} and {named[-1]} hold places and wait for each other"
