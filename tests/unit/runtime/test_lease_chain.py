"""Two leases that one process has to hold at a time."""

from __future__ import annotations

import asyncio
import random

import pytest

from fairlead.cluster.store.store import Store, StoreApi
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.kinds import LEASE
from fairlead.errors import ApiError, Forbidden
from fairlead.runtime.leader import UNKNOWN_AFTER, Election, Elector, LeadershipLost
from fairlead.runtime.lease_chain import LeaseChain
from tests.support.sleeping import Time


class Hall:
    def __init__(self) -> None:
        self.time = Time()
        self.store = Store(clock=self.time, rng=random.Random(1))
        self.working: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.ends: dict[str, asyncio.Event] = {}
        self.refuses: ApiError | None = None

    async def get(self, *about: object) -> object:
        if self.refuses is not None:
            raise self.refuses
        return await StoreApi(self.store).get(*about)  # type: ignore[arg-type]

    async def perform(self, write: Write) -> object:
        if self.refuses is not None:
            raise self.refuses
        return await StoreApi(self.store).perform(write)

    def elector(self, who: str, lease: str) -> Elector:
        return Elector(
            self, Election(lease, identity=who),  # type: ignore[arg-type]
            monotonic=self.time, wall=self.time, sleep=self.time.sleep, rng=random.Random(who),
            annotations=lambda: {"said-by": who},
        )  # fmt: skip

    def enter(self, who: str, *leases: str) -> LeaseChain:
        self.ends[who] = asyncio.Event()
        chain = LeaseChain([self.elector(who, lease) for lease in leases])

        async def work() -> None:
            self.working.append(who)
            try:
                await self.ends[who].wait()
            finally:
                self.working.remove(who)

        self.tasks[who] = asyncio.ensure_future(chain.run(work))
        return chain

    async def close(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


async def test_nobody_works_before_both_leases_are_held() -> None:
    hall = Hall()
    old = hall.enter("old-mode", "ours")
    await hall.time.advance(10)
    foreign = hall.enter("kube-scheduler", "theirs")
    await hall.time.advance(10)
    new, spare = hall.enter("new-mode", "ours", "theirs"), hall.enter("spare", "ours", "theirs")
    await hall.time.advance(60)
    assert hall.working == ["old-mode", "kube-scheduler"]
    assert (new.leader, new.leading, new.may_write, new.knows) == ("old-mode", False, False, True)
    hall.ends["old-mode"].set()
    await hall.time.advance(10)
    assert hall.working == ["kube-scheduler"], "the names of the release have nobody before both are free"
    assert {new.leader, spare.leader} <= {"kube-scheduler", "new-mode", "spare"}
    hall.ends["kube-scheduler"].set()
    await hall.time.advance(10)
    (leader,) = hall.working
    chain = {"new-mode": new, "spare": spare}[leader]
    assert (chain.leading, chain.may_write, chain.healthy, chain.leader) == (True, True, True, leader)
    assert chain.led_since > 0
    assert not old.leading
    assert not foreign.leading
    await hall.close()


async def test_either_lease_lost_ends_the_work() -> None:
    hall = Hall()
    hall.enter("a", "ours", "theirs")
    await hall.time.advance(5)
    assert hall.working == ["a"]
    stolen = {"spec": {"holderIdentity": "b", "leaseDurationSeconds": 15}}
    hall.store.perform(Write(Verb.PATCH, LEASE, "kube-system", "ours", stolen, patch_type=PatchType.MERGE))
    await hall.time.advance(10)
    assert hall.working == []
    with pytest.raises(LeadershipLost):
        await hall.tasks["a"]
    assert not hall.store.read(LEASE, "kube-system", "theirs")["spec"].get("holderIdentity"), "the other is given back"
    await hall.close()


async def test_who_may_not_read_the_lease_is_not_informed_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    hall = Hall()
    chain = hall.enter("a", "ours")
    hall.refuses = Forbidden("leases is forbidden")
    await hall.time.advance(UNKNOWN_AFTER - 5)
    assert chain.knows
    await hall.time.advance(300)
    assert not chain.knows
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    assert "kube-system/ours could be neither read nor written for 30 s: leases is forbidden" in errors[0].getMessage()
    hall.refuses = None
    await hall.time.advance(10)
    assert chain.knows
    assert hall.store.read(LEASE, "kube-system", "ours")["metadata"]["annotations"]["said-by"] == "a"
    await hall.close()
