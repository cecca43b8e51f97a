"""Fresh random worlds with gangs, under the real kube-scheduler and under ours, each on a real API server: the same
groups start, the same pods have to go, and those that wait are told the same.

`make fuzz` makes new ones: FAIRLEAD_FUZZ says how many and FAIRLEAD_FUZZ_SEED where to begin (`make fuzz N=9 SEED=7`).
Without them it is the same few worlds every time: a change should not fail because of a world that nobody has seen.
What differs is kept in build/fuzz/. A world about which we differ is played again, with more time to settle.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fairlead.core.engine.queue import sweeps
from tests.support.fuzz.gang_play import Facts, Live, Played, play, played_often
from tests.support.fuzz.gangs import make_world
from tests.support.fuzz.paths import ROOT
from tests.support.real.control_plane import ControlPlane
from tests.support.real.gang_contenders import kube_scheduler, on_a_real_server, our_scheduler, ours

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=60)]

FAMILIAR = 7000
COUNT = int(os.environ.get("FAIRLEAD_FUZZ", "16"))
AT_ONCE = 16
TRIES = ((2, 3.5), (6, 4.5), (20, 7.0))
"""With how many seeds we decide a world, and after how many quiet seconds it has settled, from one try to the next."""


@dataclass
class Tally:
    """`forced` are facts that do not depend on chance: only they are compared."""

    forced: int = 0
    by_chance: int = 0
    differences: list[dict[str, Any]] = field(default_factory=list)

    def add(self, seed: int, theirs: Facts, mine: Facts, often: Played, in_their_way: Played) -> bool:
        """Count a world's facts; says whether all agree. Ours may differ only in what depends on how victims are
        chosen, and what would come out if we chose them in their way is held to theirs too."""
        before = len(self.differences)
        for name, said in theirs.items():
            expected = _always([facts[seed] for facts in in_their_way], name)
            if expected is None:
                self.by_chance += 1
                continue
            self.forced += 1
            by_us = [mine[name]] if name in mine and _always([facts[seed] for facts in often], name) == expected else []
            if any(value != said for value in [*expected, *by_us]):
                self.differences.append(
                    {
                        "seed": seed,
                        "fact": name,
                        "theirs": said,
                        "ours": mine.get(name),
                        "virtually": expected[0],
                    }
                )
        return len(self.differences) == before


def _always(often: Sequence[Facts], name: str) -> list[Any] | None:
    """What a fact is whatever the seed, in a list; None if that is left to chance."""
    values = [facts[name] for facts in often if name in facts]
    return values[:1] if len(values) == len(often) and all(value == values[0] for value in values) else None


@asynccontextmanager
async def _often_tried(plane: ControlPlane) -> AsyncIterator[None]:
    """Ours wakes groups when something could help them. Here it looks at them every second besides, as the original
    does, so that what they were told last is about the same cluster."""
    async with ours(plane, our_scheduler(unschedulable_limit=0.5)):
        yield


async def test_the_real_kube_scheduler_starts_the_same_gangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "SWEEP_PERIOD", 1.0)
    fresh = secrets.randbelow(10**6) if "FAIRLEAD_FUZZ" in os.environ else FAMILIAR
    seed = int(os.environ.get("FAIRLEAD_FUZZ_SEED") or fresh)
    tally = Tally()
    async with (
        on_a_real_server(tmp_path / "theirs", kube_scheduler) as their_api,
        on_a_real_server(tmp_path / "ours", _often_tried) as our_api,
    ):
        for first in range(seed, seed + COUNT, AT_ONCE):
            seeds = list(range(first, min(first + AT_ONCE, seed + COUNT)))
            for turn, (often, quiet) in enumerate(TRIES):
                worlds = [make_world(number, turn) for number in seeds]
                virtual = await played_often(worlds, range(often))
                theirs, mine = await asyncio.gather(*(play(Live(api, quiet), worlds) for api in (their_api, our_api)))
                found = Tally()
                seeds = [one for one in seeds if not found.add(one, theirs[one], mine[one], *virtual)]
                if turn == 0:
                    tally.forced += found.forced
                    tally.by_chance += found.by_chance
                if not seeds:
                    break
            else:
                tally.differences += found.differences
            _keep(seed, tally)
    assert tally.forced > 5 * COUNT
    assert tally.differences == [], f"{tally.forced} facts of {COUNT} worlds from seed {seed} on are not left to chance"


def _keep(seed: int, tally: Tally) -> None:
    file = ROOT / "build" / "fuzz" / f"gangs-{seed}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    counts: Mapping[str, Any] = {"forced": tally.forced, "byChance": tally.by_chance, "differ": tally.differences}
    file.write_text(json.dumps(counts, indent=1, default=sorted))
