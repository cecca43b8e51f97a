"""Lives of a `fairlead up --data` that is killed again and again, and what its clients saw in all of them."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Callable
from pathlib import Path

import yaml

from tests.support.history.clients import Clients
from tests.support.processes.up import Up

Between = Callable[[int, Path], None]


def live(directory: Path, *, kills: int, seconds: float, seed: int = 1, between: Between | None = None) -> Clients:
    """So many kills at random moments, `seconds` apart in the mean, and a life without one. `between` is called after
    each kill with its number and the directory of the data."""
    clients, rng = Clients(seed), random.Random(seed)
    for life in range(kills + 1):
        with Up(directory, "--nodes", "1", "--data", "data") as up:
            up.wait_ready()
            asyncio.run(_one(clients, up, rng.uniform(0.5, 1.5) * seconds, kill=life < kills))
        if between is not None and life < kills:
            between(life, directory / "data")
    return clients


async def _one(clients: Clients, up: Up, seconds: float, *, kill: bool) -> None:
    found = yaml.safe_load(up.kubeconfig.read_text())
    cluster, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
    ca = base64.b64decode(cluster["certificate-authority-data"])

    async def end() -> bool:
        await asyncio.sleep(seconds)
        if kill:
            up.kill()
        return kill

    await clients.life(cluster["server"], user["token"], ca, end())
