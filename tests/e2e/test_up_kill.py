"""kill -9 of a whole `fairlead up --data` in the middle of writes over HTTP: what was acknowledged is there afterwards.

The directory lives through all kills, so that each start also opens what the last one left behind. Writers create,
update and delete; a write that was on its way when the process died may have happened or not, everything else is
exactly as it was acknowledged.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.client.port import Query
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP
from fairlead.errors import ApiError
from tests.support.processes.up import Up

KILLS = 10
WRITERS = 8
Content = str | None


class Ledger:
    """Of each name what was last acknowledged, and what was under way when the process died."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, Content] = {}
        self.open: dict[str, Content] = {}
        self.count = 0
        self._enough = asyncio.Event()
        self._aim = 0

    def acknowledge(self, name: str, content: Content) -> None:
        self.acknowledged[name] = content
        del self.open[name]
        self.count += 1
        if self.count >= self._aim:
            self._enough.set()

    async def more(self, count: int) -> None:
        """Wait for so many more acknowledgements."""
        self._aim = self.count + count
        self._enough = asyncio.Event()
        await self._enough.wait()

    def allows(self, name: str, found: Content) -> bool:
        known = self.acknowledged.get(name)
        return found == known or (name in self.open and found == self.open[name])

    def settle(self, found: dict[str, Content]) -> None:
        for name in self.acknowledged.keys() | self.open.keys() | found.keys():
            assert self.allows(name, found.get(name)), f"{name}: found {found.get(name)!r}"
        self.acknowledged = dict(found)
        self.open.clear()


async def write_until_it_dies(api: KubeApi, ledger: Ledger, writer: int, rng: random.Random) -> None:
    """Each writer has names of its own, so that it knows what to expect of them."""
    while True:
        name = f"w{writer}-{rng.randrange(20)}"
        there = ledger.acknowledged.get(name) is not None
        wanted = None if there and rng.random() < 0.2 else f"{rng.getrandbits(64):x}"
        ledger.open[name] = wanted
        try:
            await api.perform(_write(name, wanted, there=there))
        except ApiError:
            return
        ledger.acknowledge(name, wanted)


def _write(name: str, wanted: Content, *, there: bool) -> Write:
    if wanted is None:
        return Write(Verb.DELETE, CONFIG_MAP, "default", name)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": wanted}}
    return Write(Verb.UPDATE if there else Verb.CREATE, CONFIG_MAP, "default", name, body)


async def one_life(up: Up, ledger: Ledger, rng: random.Random) -> None:
    """Check what the last life left, write, and die at a random moment."""
    api = KubeApi(load_kubeconfig(up.kubeconfig), attempts=1)
    try:
        found = (await api.list(CONFIG_MAP, Query(namespace="default"))).items
        ledger.settle({item["metadata"]["name"]: item["data"]["value"] for item in found if "value" in item["data"]})
        writers = [
            asyncio.create_task(write_until_it_dies(api, ledger, number, random.Random(rng.random())))
            for number in range(WRITERS)
        ]
        await ledger.more(rng.randrange(20, 300))
        up.kill()
        await asyncio.gather(*writers)
    finally:
        await api.close()


@pytest.mark.long
def test_no_acknowledged_write_is_missing_after_kill_9(tmp_path: Path) -> None:
    ledger, rng = Ledger(), random.Random()
    for _ in range(KILLS):
        with Up(tmp_path / "here", "--nodes", "2", "--data", "data") as up:
            up.wait_ready()
            asyncio.run(one_life(up, ledger, rng))
    with Up(tmp_path / "here", "--data", "data") as up:
        up.wait_ready()
        asyncio.run(_check(up, ledger))
    assert ledger.count > KILLS * 20


async def _check(up: Up, ledger: Ledger) -> None:
    api = KubeApi(load_kubeconfig(up.kubeconfig))
    try:
        found = (await api.list(CONFIG_MAP, Query(namespace="default"))).items
        ledger.settle({item["metadata"]["name"]: item["data"]["value"] for item in found if "value" in item["data"]})
    finally:
        await api.close()
