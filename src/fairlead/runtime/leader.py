"""Leader election by a Lease, as client-go does it: of several processes only the holder acts.

    standing by ──acquired──▶ leading ──not renewed in time, or taken──▶ lost
                                 └───────────stopped──▶ released

A Lease is valid as long as its holder keeps changing it; others measure that by their own clock from the moment they
last saw it change, so clocks need not agree. Give the elector an api of its own, with its own connections: a queue
of writes must never cost a busy leader its lease. Each request of a renewal gets half of what is left of the deadline
at most, so that one that hangs leaves time for others; a holder renews with one request, as it knows the lease.

Invariant: `work` runs, and `may_write` holds, only within `renew` seconds of sending a renewal that succeeded. Others
take the lease `lease` seconds after they saw that renewal at the earliest, so nobody else writes by then, even if this
process was stopped in between.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import LEASE
from fairlead.core.model.times import micro_timestamp
from fairlead.errors import AlreadyExists, ApiError, Conflict, FairleadError, NotFound
from fairlead.runtime.reporting import OncePerMinute

if TYPE_CHECKING:
    from fairlead.client.port import ClusterApi

log = logging.getLogger("fairlead.leader")

_JITTER = 1.2
_GRACE = 20.0
UNKNOWN_AFTER = 30.0
"""Seconds without an answer about the lease after which a process that stands by is not ready: it could not take over,
and does not know whether anybody leads."""


class LeadershipLost(FairleadError):
    """The lease could not be renewed in time; another holder must not be disturbed."""


def identity() -> str:
    """Who we are in a Lease: host and a random part, as every restart is a new candidate."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True, slots=True)
class Election:
    """What is elected and how patiently: seconds a lease lasts, may go unrenewed, and between attempts."""

    name: str
    namespace: str = "kube-system"
    identity: str = field(default_factory=identity)
    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    @property
    def lease_key(self) -> str:
        return f"{self.namespace}/{self.name}"


def _says_nothing() -> dict[str, str]:
    return {}


class Elector:
    """One candidate. `leader` is who holds the lease as far as we have seen."""

    def __init__(
        self,
        api: ClusterApi,
        election: Election,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
        annotations: Callable[[], dict[str, str]] = _says_nothing,
    ) -> None:
        """`annotations` are those that the lease has while it is ours, asked for with every renewal."""
        self._api, self._election, self._annotations = api, election, annotations
        self._monotonic, self._wall, self._sleep = monotonic, wall, sleep
        self._rng = rng or random.Random()
        self._seen: Doc | None = None
        self._seen_at = float("-inf")
        self._renewed_at = float("-inf")
        """When the last renewal that succeeded was sent."""
        self._answered_at = monotonic()
        self._unknown = False
        """Whether it was said that nothing is known of the lease."""
        self._said = OncePerMinute(monotonic, log=log)
        self.led_since = 0.0
        """The wall time at which this process became the leader."""

    @property
    def leader(self) -> str:
        return _spec(self._seen).get("holderIdentity") or ""

    @property
    def leading(self) -> bool:
        return self.leader == self._election.identity and self._valid()

    @property
    def knows(self) -> bool:
        """Whether the lease could be read, or written, within the last half a minute."""
        return self._monotonic() < self._answered_at + UNKNOWN_AFTER

    @property
    def may_write(self) -> bool:
        """Whether nobody else can hold the lease yet. To be asked before each write: a process that was stopped for a
        while wakes up with writes in hand and a lease that is another's."""
        in_time = self._monotonic() < self._renewed_at + self._election.renew
        return in_time and self.leader == self._election.identity

    @property
    def healthy(self) -> bool:
        """False while we hold a lease that should have been renewed, or given up, long ago."""
        if self.leader != self._election.identity:
            return True
        return self._monotonic() < self._seen_at + self._election.lease + _GRACE

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Stand by until elected, then do `work` while leading. Returns when the work ends, with the lease given back;
        raises LeadershipLost when the lease is lost, with the work cancelled."""
        await self.acquire()
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._renew())
        try:
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            else:
                renewing.result()
        finally:
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            await self.release()

    async def acquire(self) -> None:
        """Wait until the lease is ours."""
        self._answered_at = self._monotonic()
        while not await self._attempt():
            await self._sleep(self._election.retry * (1.0 + _JITTER * self._rng.random()))
        self.led_since = self._wall()
        log.info("became leader of %s", self._election.name, extra={"identity": self._election.identity})

    async def release(self) -> None:
        """Give the lease back, so that the next one need not wait for it to run out."""
        if not self.leading:
            return
        self._renewed_at = float("-inf")
        try:
            async with asyncio.timeout(self._election.retry):
                try:
                    await self._put(self._given_back())
                except Conflict:  # a renewal whose answer was not waited for came first
                    self._notice(await self._api.get(LEASE, self._election.namespace, self._election.name))
                    if self.leader == self._election.identity:
                        await self._put(self._given_back())
        except TimeoutError:
            log.warning("could not release the lease %s: no answer", self._election.lease_key)
        except ApiError as error:
            log.warning("could not release the lease %s: %s", self._election.lease_key, error)

    def _given_back(self) -> dict[str, Any]:
        record = self._record(_spec(self._seen)) | {"holderIdentity": "", "leaseDurationSeconds": 1}
        return record | {"acquireTime": record["renewTime"]}

    async def _renew(self) -> None:
        pause = self._election.retry
        while True:
            await self._sleep(pause)
            began = self._monotonic()
            left = self._renewed_at + self._election.renew - began
            if left > 0 and await self._attempt(within=left / 2, renewing=True):
                pause = self._election.retry
            elif self.leader != self._election.identity or not self.may_write:
                raise LeadershipLost(f"lost the lease {self._election.namespace}/{self._election.name}")
            else:
                # The next attempt comes sooner the less time is left; one that hung has waited enough already.
                pause = max(0.05, min(self._election.retry, left / 4) - (self._monotonic() - began))

    async def _attempt(self, *, within: float | None = None, renewing: bool = False) -> bool:
        """Take or renew the lease; False if it is another's, or the API would not have it. `within` bounds each
        request, in seconds. Who is `renewing` takes it from nobody, however long ago the holder renewed: another
        has written meanwhile, and work that went on would not know of it."""
        try:
            taken = await self._take(within, renewing=renewing)
        except TimeoutError:
            self._failed("no answer")
            return False
        except (AlreadyExists, Conflict):  # another was quicker
            taken = False
        except ApiError as error:
            self._failed(str(error))
            return False
        self._answered_at, self._unknown = self._monotonic(), False
        return taken

    def _failed(self, why: str) -> None:
        where = self._election.lease_key
        if self.knows or self.leading:
            self._said.say("lease", logging.WARNING, "lease %s: %s", where, why)
        elif not self._unknown:
            self._unknown = True
            log.error(
                "the lease %s could be neither read nor written for %.0f s: %s; this process is not ready, because it "
                "cannot take over",
                where,
                UNKNOWN_AFTER,
                why,
            )

    async def _take(self, within: float | None, *, renewing: bool) -> bool:
        election = self._election
        if self.leading:
            try:
                await self._put(self._record(_spec(self._seen)), within=within)
                return True
            except Conflict:
                pass  # the answer to an earlier renewal was lost, or another took it: look
        try:
            async with asyncio.timeout(within):
                self._notice(await self._api.get(LEASE, election.namespace, election.name))
        except NotFound:
            await self._put(self._record({}), create=True, within=within)  # AlreadyExists if another was quicker
            return True
        if self.leader != election.identity and (renewing or (self.leader and self._valid())):
            return False
        await self._put(self._record(_spec(self._seen)), within=within)
        return True

    def _notice(self, lease: Doc) -> None:
        if _spec(lease) != _spec(self._seen) or self._seen is None:
            self._seen_at = self._monotonic()
        self._seen = lease

    def _valid(self) -> bool:
        """Whether the holder renewed recently enough, by our own clock."""
        return self._monotonic() < self._seen_at + float(_spec(self._seen).get("leaseDurationSeconds") or 0)

    def _record(self, before: dict[str, Any]) -> dict[str, Any]:
        now = micro_timestamp(self._wall())
        ours = before.get("holderIdentity") == self._election.identity
        transitions = int(before.get("leaseTransitions") or 0)
        return before | {
            "holderIdentity": self._election.identity,
            "leaseDurationSeconds": round(self._election.lease),
            "acquireTime": before.get("acquireTime", now) if ours else now,
            "renewTime": now,
            "leaseTransitions": transitions + (1 if before and not ours else 0),
        }

    async def _put(self, spec: dict[str, Any], *, create: bool = False, within: float | None = None) -> None:
        """Write the lease as we saw it; a resourceVersion that moved on is a Conflict, and then we were too late."""
        name, namespace = self._election.name, self._election.namespace
        seen: dict[str, Any] = {} if create or self._seen is None else self._seen["metadata"]
        metadata = seen or {"name": name, "namespace": namespace}
        if annotations := self._annotations():
            metadata = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}
        body = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": metadata,
            "spec": spec,
        }
        verb = Verb.CREATE if create else Verb.UPDATE
        sent_at = self._monotonic()
        async with asyncio.timeout(within):
            self._notice(await self._api.perform(Write(verb, LEASE, namespace, name, body)))
        if spec["holderIdentity"] == self._election.identity:
            self._renewed_at = sent_at


def _spec(lease: Doc | None) -> dict[str, Any]:
    return (lease or {}).get("spec") or {}
