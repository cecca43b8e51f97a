"""DeviceQuotas: how many devices of a class a queue may hold.

A queue's capability may name device classes: `deviceclass/<class>` limits the number of devices, and
`<dimension>.deviceclass/<class>` the capacity that is asked of them; 0 is no limit. What a pod requests is read from
its resource claims; a claim that pods of one queue share counts once for it. A group is let in if the queue may have
what its minimum requests besides what is used and what was promised to groups that were let in before. Without such a
name in any capability nothing is counted.

Invariant: `used` of a queue is the sum over the claims of its pods that have a place, each claim once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.core.model.device_claims import claims_made_for
from fairlead.kube.claims.devices import devices_of
from fairlead.volcano.records.tasks import ALLOCATED_CLASS

if TYPE_CHECKING:
    from fairlead.core.model.device_claims import ClaimSpec, ResourceClaim
    from fairlead.volcano.queues.account import QuotaAccount
    from fairlead.volcano.rounds.round import Job, Round, Task

PREFIX = "deviceclass/"
_NANO = 10**9


def names_devices(resource: str) -> bool:
    return resource.startswith(PREFIX) or f".{PREFIX}" in resource


class DeviceQuotas:
    """The sums of one round."""

    def __init__(self, round: Round, limited: bool) -> None:
        self._devices = devices_of(round.cluster) if limited else None
        self._held: dict[str, Counter[str]] = {}
        """By queue, how many pods with a place use each claim."""
        self._used: dict[str, Counter[str]] = {}
        self._promised: dict[str, dict[str, Counter[str]]] = {}
        """By queue, what groups that were let in will request: by the key of a shared claim, or of the group."""
        self._slips = round.quirks.device_minimums_slip

    @classmethod
    def of(cls, round: Round, accounts: Iterable[QuotaAccount]) -> DeviceQuotas:
        limited = any(names_devices(name) for one in accounts for name in one.rules.capability or ())
        return cls(round, limited)

    def count(self, round: Round, line: Mapping[str, list[str]]) -> None:
        """Count the pods that have a place already. `line` names, for each queue, the queues that they count for."""
        if self._devices is None:
            return
        for job in round.jobs.values():
            for task in job.in_status(*ALLOCATED_CLASS):
                self.take(task, line.get(job.queue, ()))
        if not self._slips:
            for job in round.jobs.values():
                if job.phase == "Inqueue":
                    self.promise(job, line.get(job.queue, ()))

    def asks_for_some(self, job: Job) -> bool:
        """Whether a group's minimum requests devices, where any are limited."""
        return self._devices is not None and bool(self._minimum(job))

    def lets_in(self, job: Job, line: Iterable[QuotaAccount]) -> bool:
        """Whether each of the queues may have what the group's minimum requests."""
        least = self._minimum(job) if self._devices is not None else {}
        for account in line if least else ():
            capability = account.rules.capability or {}
            held, promised = self._held.get(account.name, Counter()), self._promised.get(account.name, {})
            sums = Counter(self._used.get(account.name, Counter()))
            for asked in promised.values():
                sums.update(asked)
            more: Counter[str] = Counter()
            for key, asked in least.items():
                if not held[key] and (key == job.uid or key not in promised):
                    more.update(asked)
            limits = ((sums[name] + amount, capability.get(name, 0)) for name, amount in more.items())
            if any(wanted > limit for wanted, limit in limits if limit):
                return False
        return True

    def promise(self, job: Job, line: Iterable[str]) -> None:
        """A group was let in."""
        least = self._minimum(job) if self._devices is not None else {}
        for queue in line if least else ():
            held, promised = self._held.get(queue, Counter()), self._promised.setdefault(queue, {})
            promised.update({key: asked for key, asked in least.items() if not held[key]})

    def _minimum(self, job: Job) -> dict[str, Counter[str]]:
        """What the part of a group's minimum that has no place yet requests: by the key of a shared claim, and the rest
        by the group's. In the original a shared claim counts for each pod."""
        found: dict[str, Counter[str]] = {}
        for task, times in self._least(job):
            for claim in self._claims(task):
                asked = asked_by(claim.spec)
                if self._slips or claim.owner_uid == task.pod.uid:
                    own = found.setdefault(job.uid, Counter())
                    own.update({name: amount * times for name, amount in asked.items()})
                else:
                    found[claim.key] = asked
        return found

    def _least(self, job: Job) -> Iterator[tuple[Task, int]]:
        """The tasks that make up the minimum, each with how often it counts: those with claims whose names come first,
        or one of each role as often as the role is needed."""
        with_claims = [task for task in job.tasks.values() if task.pod.resource_claims]
        waiting = [task for task in with_claims if self._slips or task.status not in ALLOCATED_CLASS]
        waiting.sort(key=lambda task: (task.namespace, task.name, task.uid))
        if not job.role_minimums:
            needed = job.min_available - (0 if self._slips else len(with_claims) - len(waiting))
            yield from ((task, 1) for task in waiting[: max(0, needed)])
            return
        for role, least in job.role_minimums.items():
            first = next((task for task in waiting if task.role == role), None)
            placed = 0 if self._slips else sum(task.role == role for task in with_claims if task not in waiting)
            if first is not None and least > placed:
                yield first, least - placed

    def allows(self, task: Task, line: Iterable[QuotaAccount]) -> bool:
        """Whether each of the queues may have what the pod's claims request on top of what it has."""
        if self._devices is None or not task.pod.resource_claims:
            return True
        claims = self._claims(task)
        for account in line:
            capability = account.rules.capability or {}
            used, held = self._used.get(account.name, Counter()), self._held.get(account.name, Counter())
            more: Counter[str] = Counter()
            for claim in claims:
                if not held[claim.key]:
                    more.update(asked_by(claim.spec))
            limits = ((used[name] + amount, capability.get(name, 0)) for name, amount in more.items())
            if any(wanted > limit for wanted, limit in limits if limit):
                return False
        return True

    def take(self, task: Task, line: Iterable[str]) -> None:
        """A pod has got a place."""
        for claim in self._claims(task):
            for queue in line:
                held = self._held.setdefault(queue, Counter())
                held[claim.key] += 1
                if held[claim.key] == 1:
                    self._used.setdefault(queue, Counter()).update(asked_by(claim.spec))

    def give_back(self, task: Task, line: Iterable[str]) -> None:
        """It has lost it."""
        for claim in self._claims(task):
            for queue in line:
                held = self._held.setdefault(queue, Counter())
                held[claim.key] -= 1
                if not held[claim.key]:
                    del held[claim.key]
                    self._used[queue].subtract(asked_by(claim.spec))

    def _claims(self, task: Task) -> list[ResourceClaim]:
        devices, pod = self._devices, task.pod
        if devices is None or not pod.resource_claims:
            return []
        made = claims_made_for(pod)
        names = {entry.claim or made.get(entry.name) for entry in pod.resource_claims}
        found = (devices.claims.get(f"{pod.namespace}/{name}") for name in sorted(filter(None, names)))
        return [claim for claim in found if claim is not None]


def asked_by(spec: ClaimSpec) -> Counter[str]:
    """What a claim requests, under the names of quotas. Of alternatives the first counts; a request for all devices
    of a node counts as one, because how many those are is known only on the node."""
    asked: Counter[str] = Counter()
    for slot in spec.slots:
        request = slot.choices[0]
        if request.admin:
            continue
        number = 1 if request.everything else request.count
        asked[PREFIX + request.device_class] += number
        for dimension, amount in request.capacity.items():
            asked[f"{dimension}.{PREFIX}{request.device_class}"] += number * -(-amount.nanos // _NANO)
    return asked
