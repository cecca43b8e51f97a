"""Explanations of queues: what a queue holds and may hold, line by line, and which groups wait in it.

They are made from the round that is under way or was closed last, and from the plugin that keeps accounts of queues,
on request. In a tree a queue can have no more than each of its ancestors has left; the last lines of the sum
show that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cmp_to_key
from typing import TYPE_CHECKING, Protocol

from fairlead.core.model.quantity import format_quantity
from fairlead.volcano.records.amounts import PODS, UNLIMITED, Amounts
from fairlead.volcano.records.groups import made_for
from fairlead.volcano.records.queue_explanation import Holder, QueueExplanation
from fairlead.volcano.records.tasks import TaskStatus

if TYPE_CHECKING:
    from fairlead.volcano.records.queue_explanation import Amount
    from fairlead.volcano.rounds.driver import RoundDriver
    from fairlead.volcano.rounds.round import Job, QueueState, Round

NAMED = 20
PROPORTION = "proportion"
ROOT = "root"


class QueueAccount(Protocol):
    """What a plugin that keeps accounts of queues knows of one."""

    name: str
    allocated: Amounts
    request: Amounts
    inqueue: Amounts
    elastic: Amounts
    deserved: Amounts
    guarantee: Amounts
    limit: Amounts
    share: float


class QueueAccounts:
    """A queue's account, those of the queues above it, and why it has none, from whichever plugin keeps accounts."""

    def __init__(self, round: Round, queue: str) -> None:
        self.plugin, self.line, self.trouble = "", list[QueueAccount](), ""
        for name, plugin in round.tiers.plugins.items():
            line = getattr(plugin, "accounts_up_from", None)
            if line is not None:
                self.plugin, self.line = name, line(queue)
                self.trouble = plugin.trouble(queue) if hasattr(plugin, "trouble") else ""
                return

    @property
    def own(self) -> QueueAccount | None:
        return self.line[0] if self.line else None

    def ceiling(self, account: QueueAccount, resource: str) -> float:
        """How much of a resource pods may have: proportion lets nobody have more than is deserved."""
        return (account.deserved if self.plugin == PROPORTION else account.limit).get(resource)

    def left_for_pods(self, account: QueueAccount, resource: str) -> float:
        ceiling = self.ceiling(account, resource)
        return ceiling if ceiling >= UNLIMITED else ceiling - account.allocated.get(resource)

    def left_for_entry(self, account: QueueAccount, resource: str) -> float:
        limit = account.limit.get(resource)
        entered = account.allocated.get(resource) + account.inqueue.get(resource) - account.elastic.get(resource)
        return limit if limit >= UNLIMITED else limit - entered


def explain_queue(driver: RoundDriver, name: str) -> QueueExplanation | None:
    round = driver.latest
    queue = round.queues.get(name) if round is not None else None
    if round is None or queue is None:
        return None
    accounts = QueueAccounts(round, name)
    jobs = [job for job in round.jobs.values() if job.queue == name]
    waiting = in_turn(round, jobs)
    ending = total(task.request for job in jobs for task in job.in_status(TaskStatus.RELEASING))
    own = accounts.own
    return QueueExplanation(
        name=name,
        state=queue.queue.state,
        plugin=accounts.plugin,
        weight=queue.queue.weight,
        parent=queue.queue.parent,
        share=None if own is None else own.share,
        place=_place_of_queue(round, queue),
        sums={} if own is None else {r: _lines(r, own, queue, ending, accounts) for r in _named(own, queue, waiting)},
        holders=tuple(_holders(jobs)),
        waiting=tuple(job.uid for job in waiting[:NAMED]),
        why=tuple(_reasons(queue, accounts, waiting)),
        owners=owners_of(jobs),
    )


def total(requests: Iterable[Amounts]) -> Amounts:
    found = Amounts()
    for request in requests:
        found.add(request)
    return found


def _named(account: QueueAccount, queue: QueueState, waiting: Sequence[Job]) -> list[str]:
    """The resources that appear in the queue's limits, in its use, or in what its waiting groups need."""
    names = ["cpu", "memory"]
    needed = (job.minimum() for job in waiting)
    own = (account.allocated, account.request, account.inqueue, account.guarantee, account.deserved)
    for amounts in (*own, *needed):
        names += [name for name, amount in amounts.scalars.items() if amount]
    names += queue.queue.capability or ()
    return [name for name in dict.fromkeys(names) if name != PODS or PODS in (queue.queue.capability or ())]


def _lines(
    name: str, account: QueueAccount, queue: QueueState, ending: Amounts, accounts: QueueAccounts
) -> dict[str, Amount]:
    capability = (queue.queue.capability or {}).get(name)
    return {
        "capability": None if capability is None else format_quantity(capability, name),
        "guarantee": said(name, account.guarantee.get(name)),
        "limit": said(name, account.limit.get(name)),
        "deserved": said(name, account.deserved.get(name)),
        "request": said(name, account.request.get(name)),
        "allocated": said(name, account.allocated.get(name)),
        "inqueue": said(name, account.inqueue.get(name)),
        "elastic": said(name, account.elastic.get(name)),
        "ending": said(name, ending.get(name)),
        "leftForEntry": said(name, min(accounts.left_for_entry(one, name) for one in accounts.line)),
        "leftForPods": said(name, min(accounts.left_for_pods(one, name) for one in accounts.line)),
    }


def said(name: str, amount: float) -> Amount:
    """An amount as a quantity; None if it is no limit."""
    if amount >= UNLIMITED / 2:
        return None
    made = Amounts()
    made.set(name, abs(amount))
    text = format_quantity(made.to_units()[name], name)
    return f"-{text}" if amount < 0 and text != "0" else text


def amounts_text(amounts: Amounts) -> dict[str, str]:
    return {name: text for name, value in amounts.items() if value and (text := said(name, value)) is not None}


def _holders(jobs: Sequence[Job]) -> Iterator[Holder]:
    for job in sorted(jobs, key=lambda job: (-job.allocated.cpu, -job.allocated.memory, job.uid))[:NAMED]:
        kept = kept_for(job)
        if not job.allocated.empty or not kept.empty:
            yield Holder(job.uid, job.phase, amounts_text(job.allocated), amounts_text(kept))


def kept_for(job: Job) -> Amounts:
    """The part of its minimum that an admitted group has not been given yet."""
    kept = Amounts()
    if job.min_resources is not None and job.phase in ("Inqueue", "Running"):
        for name, least in job.min_resources.items():
            kept.set(name, max(0.0, least - job.allocated.get(name)))
    return kept


def owners_of(jobs: Iterable[Job]) -> Mapping[str, str]:
    """The owners of groups with generated names."""
    return {job.uid: made_for(job.group) for job in jobs if made_for(job.group)}


def _reasons(queue: QueueState, accounts: QueueAccounts, waiting: Sequence[Job]) -> Iterator[str]:
    """Sentences on what limits the queue, the worst first, then on how the last lines of the sum are made."""
    if not queue.queue.open:
        state = queue.queue.state or "not opened yet"
        yield f"the queue is {state}: nobody is let in and nothing is placed; what runs goes on"
    if accounts.trouble:
        yield f"the queue can have nothing: {accounts.trouble}"
    own = accounts.own
    if not accounts.plugin:
        yield "no plugin keeps accounts of queues: nothing is limited"
    elif own is not None:
        yield from _standing(queue, own, waiting)
        yield from _tight_above(accounts)
        yield from _rules(accounts)
    elif not accounts.trouble:
        yield "it has no groups, so nothing is counted for it"


def _standing(queue: QueueState, account: QueueAccount, waiting: Sequence[Job]) -> Iterator[str]:
    """Sentences that compare what the queue has with what it deserves and may have."""
    over = _exceeding(account.allocated, account.limit, account.allocated)
    if over:
        yield f"it has more than its limit: {over}; nothing is placed until it has less"
    beyond = _exceeding(account.allocated, account.deserved, account.deserved)
    if beyond and queue.name != ROOT:
        kept = "and keeps it: reclaimable is off" if not queue.queue.reclaimable else "which others may reclaim"
        yield f"it has more than it deserves: {beyond}, {kept}"
    outside = [job for job in waiting if job.is_pending]
    if outside:
        needs = amounts_text(total(job.minimum() for job in outside))
        named = ", ".join(f"{text} {name}" for name, text in needs.items()) or "nothing"
        which = "1 of its groups is" if len(outside) == 1 else f"{len(outside)} of its groups are"
        yield f"{which} not counted, in what it asks for and deserves, before enqueue lets them in: {named}"
    if len(waiting) > len(outside) and not beyond and account.deserved.less_equal(account.allocated):
        yield "it has all that it deserves: others come first, and it reclaims nothing"


def _exceeding(amounts: Amounts, bound: Amounts, named: Amounts) -> str:
    """`6 of 4 cpu`, where it is more of something that is named."""
    return ", ".join(
        f"{said(name, amounts.get(name))} of {said(name, bound.get(name))} {name}"
        for name, counts in named.items()
        if counts and name != PODS and amounts.get(name) > bound.get(name) + 0.1
    )


def _tight_above(accounts: QueueAccounts) -> Iterator[str]:
    own = accounts.line[0]
    for resource in ("cpu", "memory", *own.request.scalars):
        tightest = min(accounts.line, key=lambda one: accounts.left_for_pods(one, resource))
        left = accounts.left_for_pods(tightest, resource)
        if left < accounts.left_for_pods(own, resource) and left < own.request.get(resource):
            limit = said(resource, accounts.ceiling(tightest, resource))
            has = said(resource, tightest.allocated.get(resource))
            yield f"queue {tightest.name} above it is what limits it: it has {has} of {limit} {resource}"


def _rules(accounts: QueueAccounts) -> Iterator[str]:
    above = ", in it and in every queue above it" if len(accounts.line) > 1 else ""
    yield (
        "left to let groups in = limit - (allocated + kept - elastic): what the minimum of a group may ask for to be "
        f"let in{above}"
    )
    if accounts.plugin == PROPORTION:
        yield "left to place pods = deserved - allocated: proportion lets a queue have what it deserves and no more"
    else:
        yield (
            "left to place pods = limit - allocated: capacity lets a queue borrow beyond what it deserves, up to its "
            f"limit{above}"
        )
    whole = "its parent" if len(accounts.line) > 1 else "the cluster"
    yield f"limit = what the guarantees of the other queues leave of {whole}, and no more than the capability"


def _place_of_queue(round: Round, queue: QueueState) -> int:
    """The position of the queue in the order of queues, at the moment."""
    return 1 + sum(round.tiers.queue_first(other, queue) for other in round.queues.values() if other is not queue)


def in_turn(round: Round, jobs: Iterable[Job]) -> list[Job]:
    """Groups that still have pending pods, in the order in which they are tried."""
    wanting = [job for job in jobs if job.phase != "Completed" and not job.is_ready]

    def order(one: Job, other: Job) -> int:
        return -1 if round.tiers.job_first(one, other) else 1

    return sorted(wanting, key=cmp_to_key(order))
