"""Ten minutes of writers and watchers whose connections are cut, and twenty kills: one history must explain it all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from soak.scenarios import Extent, Outcome
from soak.validator import Verdict
from tests.support.history.checker import Checker
from tests.support.history.lives import live

MINUTES = 10.0


def history(extent: Extent) -> Outcome:
    """No scheduler takes part, and no real API server: the embedded one is what is watched."""
    with tempfile.TemporaryDirectory() as directory:
        seconds = 60 * MINUTES * extent.seconds / Extent().seconds
        clients = live(Path(directory) / "here", kills=extent.kills, seconds=seconds / (extent.kills + 1))
    problems = Checker(clients.record).check()
    events = sum(len(session.told) for session in clients.record.sessions)
    figures = {"kills": float(extent.kills), "writes": float(clients.writes), "events": float(events)}
    return Outcome("checked history", Verdict(inconsistent=problems), figures)
