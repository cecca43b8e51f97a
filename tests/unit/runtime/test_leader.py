"""Leader election on a Store, on a clock of the test's own."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from fairlead.cluster.store.store import Store, StoreApi
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import LEASE, Kind
from fairlead.errors import Unreachable
from fairlead.runtime.leader import Election, Elector, LeadershipLost, identity
from tests.support.sleeping import Time


class Flaky:
    """A StoreApi that can be made unreachable."""

    def __init__(self, store: Store) -> None:
        self._api, self.down = StoreApi(store), False
        self.mute = False
        """Whether writes happen and their answers never come."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Doc:
        self._check()
        return await self._api.get(kind, namespace, name)

    async def perform(self, write: Write) -> Doc:
        self._check()
        answer = await self._api.perform(write)
        if self.mute:
            await asyncio.get_running_loop().create_future()
        return answer

    def _check(self) -> None:
        if self.down:
            raise Unreachable("down")


class Hall:
    """Candidates for one lease, and who of them works."""

    def __init__(self) -> None:
        self.time = Time()
        self.store = Store(clock=self.time, rng=random.Random(1))
        self.working: list[str] = []
        self.apis: dict[str, Flaky] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.ends: dict[str, asyncio.Event] = {}

    def enter(self, who: str) -> Elector:
        self.apis[who], self.ends[who] = Flaky(self.store), asyncio.Event()
        elector = Elector(
            self.apis[who],
            Election("fairlead", identity=who),
            monotonic=self.time,
            wall=self.time,  # type: ignore[arg-type]
            sleep=self.time.sleep,
            rng=random.Random(who),
        )

        async def work() -> None:
            self.working.append(who)
            try:
                await self.ends[who].wait()
            finally:
                self.working.remove(who)

        self.tasks[who] = asyncio.ensure_future(elector.run(work))
        return elector

    def lease(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.store.read(LEASE, "kube-system", "fairlead")["spec"]
        return spec

    async def close(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


async def test_one_leads_and_the_other_stands_by_while_it_renews() -> None:
    hall = Hall()
    first, second = hall.enter("a"), hall.enter("b")
    await hall.time.advance(120)
    assert hall.working == ["a"]
    assert first.leading
    assert not second.leading
    assert second.leader == "a"
    spec = hall.lease()
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 15, 0)
    assert spec["acquireTime"] < spec["renewTime"]
    assert spec["renewTime"].endswith("Z")
    assert len(spec["renewTime"].split(".")[1]) == 7
    await hall.close()


async def test_a_leader_that_ends_gives_the_lease_back_and_the_next_takes_over() -> None:
    hall = Hall()
    hall.enter("a")
    hall.enter("b")
    await hall.time.advance(10)
    hall.ends["a"].set()
    await hall.time.advance(0)
    assert hall.working == []
    assert hall.tasks["a"].result() is None
    assert hall.lease()["holderIdentity"] == ""
    await hall.time.advance(5)
    assert hall.working == ["b"]
    assert hall.lease()["leaseTransitions"] == 1
    await hall.close()


async def test_a_lease_is_given_back_though_the_answer_to_a_renewal_is_missing() -> None:
    hall = Hall()
    hall.enter("a")
    await hall.time.advance(1)
    hall.apis["a"].mute = True
    await hall.time.advance(2.5)  # a renewal is under way
    hall.apis["a"].mute = False
    hall.ends["a"].set()
    await hall.time.advance(0)
    await hall.tasks["a"]
    assert not hall.store.read(LEASE, "kube-system", "fairlead")["spec"]["holderIdentity"]


async def test_a_leader_cut_off_stops_working_before_another_may_begin() -> None:
    hall = Hall()
    hall.enter("a")
    hall.enter("b")
    await hall.time.advance(10)
    hall.apis["a"].down = True
    for _ in range(40):
        await hall.time.advance(1)
        assert len(hall.working) <= 1
    assert hall.working == ["b"]
    with pytest.raises(LeadershipLost):
        hall.tasks["a"].result()
    await hall.close()


async def test_a_short_outage_costs_nobody_the_lease() -> None:
    hall = Hall()
    hall.enter("a")
    hall.enter("b")
    await hall.time.advance(10)
    hall.apis["a"].down = True
    await hall.time.advance(6)
    hall.apis["a"].down = False
    await hall.time.advance(60)
    assert hall.working == ["a"]
    await hall.close()


async def test_a_lease_taken_by_another_is_lost_at_once() -> None:
    hall = Hall()
    hall.enter("a")
    await hall.time.advance(5)
    lease = hall.store.read(LEASE, "kube-system", "fairlead")
    stolen = lease | {"spec": lease["spec"] | {"holderIdentity": "thief"}}
    hall.store.perform(Write(Verb.UPDATE, LEASE, "kube-system", "fairlead", stolen))
    await hall.time.advance(3)
    assert hall.working == []
    with pytest.raises(LeadershipLost, match="kube-system/fairlead"):
        hall.tasks["a"].result()
    assert hall.lease()["holderIdentity"] == "thief"
    await hall.close()


async def test_an_error_in_the_work_comes_out_and_the_lease_is_given_back() -> None:
    hall = Hall()
    elector = Elector(
        StoreApi(hall.store),
        Election("other", identity="x"),
        monotonic=hall.time,
        wall=hall.time,
        sleep=hall.time.sleep,
    )

    async def work() -> None:
        raise ZeroDivisionError("broken")

    with pytest.raises(ZeroDivisionError):
        await elector.run(work)
    assert hall.store.read(LEASE, "kube-system", "other")["spec"]["holderIdentity"] == ""


def test_every_process_is_a_candidate_of_its_own() -> None:
    assert identity() != identity()
    assert "_" in identity()
