"""From the last round to answers: what a queue holds and may hold, line by line; and why a group has no place.

It reads the round that is under way or was last closed, and whatever plugin keeps accounts of queues. Nothing is
computed before somebody asks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cmp_to_key
from typing import TYPE_CHECKING, Protocol

from fairlead.model import kinds
from fairlead.model.amounts import PODS, UNLIMITED, Amounts
from fairlead.model.gang_explanation import GangExplanation
from fairlead.model.pod import VOLCANO_GROUP_API
from fairlead.model.quantity import format_quantity
from fairlead.model.queue_explanation import Check, Holder, JobExplanation, QueueExplanation
from fairlead.model.tasks import TaskStatus

if TYPE_CHECKING:
    from fairlead.engine.round_driver import RoundDriver
    from fairlead.framework.round import Job, QueueState, Round
    from fairlead.model.group import PodGroup
    from fairlead.model.queue_explanation import Amount

_NAMED = 20
_TEXTS = 5


class Account(Protocol):
    """What a plugin that keeps accounts of queues knows of one."""

    allocated: Amounts
    request: Amounts
    inqueue: Amounts
    elastic: Amounts
    deserved: Amounts
    guarantee: Amounts
    limit: Amounts
    share: float


# ---- queues ----


def explain_queue(driver: RoundDriver, name: str) -> QueueExplanation | None:
    round = driver.latest
    queue = round.queues.get(name) if round is not None else None
    if round is None or queue is None:
        return None
    plugin, account = _account(round, name)
    jobs = [job for job in round.jobs.values() if job.queue == name]
    waiting = _in_turn(round, jobs)
    ending = _sum(task.request for job in jobs for task in job.in_status(TaskStatus.RELEASING))
    sums = {} if account is None else {r: _lines(r, account, queue, ending, plugin) for r in _named(account, queue)}
    return QueueExplanation(
        name=name,
        state=queue.queue.state,
        plugin=plugin,
        weight=queue.queue.weight,
        parent=queue.queue.parent,
        share=None if account is None else account.share,
        place=_place_of_queue(round, queue),
        sums=sums,
        holders=tuple(_holders(jobs)),
        waiting=tuple(job.uid for job in waiting[:_NAMED]),
        why=tuple(_reasons(queue, plugin, account, len(waiting))),
    )


def _account(round: Round, queue: str) -> tuple[str, Account | None]:
    for name, plugin in round.tiers.plugins.items():
        account = getattr(plugin, "account", None)
        if account is not None:
            return name, account(queue)
    return "", None


def _sum(requests: Iterable[Amounts]) -> Amounts:
    total = Amounts()
    for request in requests:
        total.add(request)
    return total


def _named(account: Account, queue: QueueState) -> list[str]:
    """The resources that the queue has anything to do with."""
    names = ["cpu", "memory"]
    for amounts in (account.allocated, account.request, account.inqueue, account.guarantee, account.deserved):
        names += amounts.scalars
    names += queue.queue.capability or ()
    return [name for name in dict.fromkeys(names) if name != PODS or PODS in (queue.queue.capability or ())]


def _lines(name: str, account: Account, queue: QueueState, ending: Amounts, plugin: str) -> dict[str, Amount]:
    get = Amounts.get
    limit, allocated = get(account.limit, name), get(account.allocated, name)
    entered = allocated + get(account.inqueue, name) - get(account.elastic, name)
    ceiling = get(account.deserved, name) if plugin == "proportion" else limit
    capability = (queue.queue.capability or {}).get(name)
    return {
        "capability": None if capability is None else format_quantity(capability, name),
        "guarantee": _said(name, get(account.guarantee, name)),
        "limit": _said(name, limit),
        "deserved": _said(name, get(account.deserved, name)),
        "request": _said(name, get(account.request, name)),
        "allocated": _said(name, allocated),
        "inqueue": _said(name, get(account.inqueue, name)),
        "elastic": _said(name, get(account.elastic, name)),
        "ending": _said(name, get(ending, name)),
        "leftForEntry": _said(name, limit - entered if limit < UNLIMITED else limit),
        "leftForPods": _said(name, ceiling - allocated if ceiling < UNLIMITED else ceiling),
    }


def _said(name: str, amount: float) -> Amount:
    if amount >= UNLIMITED / 2:
        return None
    made = Amounts()
    made.set(name, abs(amount))
    text = format_quantity(made.to_units()[name], name)
    return f"-{text}" if amount < 0 and text != "0" else text


def amounts_text(amounts: Amounts) -> dict[str, str]:
    return {name: text for name, value in amounts.items() if value and (text := _said(name, value)) is not None}


def _holders(jobs: Sequence[Job]) -> Iterator[Holder]:
    for job in sorted(jobs, key=lambda job: (-job.allocated.cpu, -job.allocated.memory, job.uid))[:_NAMED]:
        kept = _kept(job)
        if not job.allocated.empty or not kept.empty:
            yield Holder(job.uid, job.phase, amounts_text(job.allocated), amounts_text(kept))


def _kept(job: Job) -> Amounts:
    """What of its minimum a group that was let in has not got yet."""
    kept = Amounts()
    if job.min_resources is not None and job.phase in ("Inqueue", "Running"):
        for name, least in job.min_resources.items():
            kept.set(name, max(0.0, least - job.allocated.get(name)))
    return kept


def _reasons(queue: QueueState, plugin: str, account: Account | None, waiting: int) -> Iterator[str]:
    if not queue.queue.open:
        state = queue.queue.state or "not opened yet"
        yield f"the queue is {state}: nobody is let in and nothing is placed; what runs goes on"
    if not plugin:
        yield "no plugin keeps accounts of queues: nothing is limited"
        return
    if account is None:
        yield "it has no groups, so nothing is counted for it" if plugin == "proportion" else "the queues make no tree"
        return
    yield "leftForEntry = limit - (allocated + inqueue - elastic): what the minimum of a group may ask for to be let in"
    if plugin == "proportion":
        yield "leftForPods = deserved - allocated: proportion lets a queue have what it deserves and no more"
    else:
        yield "leftForPods = limit - allocated: capacity lets a queue borrow beyond what it deserves, up to its limit"
    yield "limit = what the guarantees of all other queues leave of the cluster, and no more than the capability"
    if account.deserved.less_equal(account.allocated) and waiting:
        yield "it has all that it deserves: others come first, and it reclaims nothing"


def _place_of_queue(round: Round, queue: QueueState) -> int:
    """Its turn among the queues, as things stand."""
    return 1 + sum(round.tiers.queue_first(other, queue) for other in round.queues.values() if other is not queue)


def _in_turn(round: Round, jobs: Iterable[Job]) -> list[Job]:
    """Those that still want something, in the order of their turns."""
    wanting = [job for job in jobs if job.phase != "Completed" and not job.is_ready]

    def order(one: Job, other: Job) -> int:
        return -1 if round.tiers.job_first(one, other) else 1

    return sorted(wanting, key=cmp_to_key(order))


# ---- groups ----


def explain_job(driver: RoundDriver, namespace: str, name: str) -> JobExplanation | None:
    """None if it is no group of this profile's queues, and not known by any."""
    round = driver.latest
    if round is None:
        return None
    groups = round.cluster.shelves.of(kinds.VC_POD_GROUP)
    key = _key_of(groups, namespace, name)
    job = round.jobs.get(key)
    if job is not None:
        return _explained(driver, round, job)
    group: PodGroup | None = groups.get(key)
    if group is None:
        return None
    queue = group.queue or driver.rounds.default_queue
    missing = Check("queue", False, f'queue "{queue}" does not exist') if queue not in round.queues else None
    checks = (missing or Check("queue", None, "the next round will look at it"),)
    return JobExplanation(_gang(driver, group, None, checks), queue, group.phase, checks)


def _key_of(groups: Iterable[str], namespace: str, name: str) -> str:
    """The group of that name, or the one that a job of that name has: `<job>-<uid>`."""
    key = f"{namespace}/{name}"
    if key in groups:
        return key
    of_job = re.compile(f"{re.escape(key)}-[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}")
    return next((known for known in groups if of_job.fullmatch(known)), key)


def _explained(driver: RoundDriver, round: Round, job: Job) -> JobExplanation:
    checks = tuple(_checks(round, job))
    waiting = _in_turn(round, (one for one in round.jobs.values() if one.queue == job.queue))
    before = waiting[: waiting.index(job)] if job in waiting else []
    return JobExplanation(
        gang=_gang(driver, job.group, job, checks),
        queue=job.queue,
        phase=job.phase,
        checks=checks,
        place=len(before) + 1 if job in waiting else None,
        waiting=len(waiting),
        before=tuple(one.uid for one in before[:_NAMED]),
    )


def _gang(driver: RoundDriver, group: PodGroup, job: Job | None, checks: Sequence[Check]) -> GangExplanation:
    round = driver.latest
    assert round is not None
    ready = job is not None and job.is_ready
    failed = next((check for check in checks if check.passed is False), None)
    where = Counter(
        round.cluster.table.name(task.row)
        for task in (job.tasks.values() if job is not None else ())
        if task.row >= 0 and task.status not in (TaskStatus.SUCCEEDED, TaskStatus.FAILED)
    )
    return GangExplanation(
        namespace=group.namespace,
        name=group.name,
        api=VOLCANO_GROUP_API,
        scheduler=driver.profile.name,
        verdict="Scheduled" if ready else "Unschedulable" if failed is not None else "Waiting",
        message="" if ready or failed is None else f"{failed.name}: {failed.text}",
        at=round.now,
        attempts=driver.counted,
        minimum=group.min_member,
        members=0 if job is None else len(job.tasks),
        scheduled=0 if job is None else job.counts.ready,
        fits=0 if job is None else job.counts.ready,
        where=where,
        blockers=() if job is None else tuple(_fit_errors(job)),
    )


def _fit_errors(job: Job) -> list[tuple[str, int]]:
    texts = Counter(errors.message for uid, errors in job.fit_errors.items() if uid in job.tasks)
    return texts.most_common(_TEXTS)


def _checks(round: Round, job: Job) -> Iterator[Check]:
    """In the order in which they stand in a group's way."""
    queue = round.queues[job.queue]
    yield Check("queue", queue.queue.open, f"{job.queue} is {queue.queue.state or 'not opened yet'}")
    yield _entry(round, job)
    yield _quota(round, job)
    yield _gang_check(job, round)
    if job.contains_topology:
        yield _topology(round, job)
    yield _nodes(job)


def _entry(round: Round, job: Job) -> Check:
    if "enqueue" not in round.actions:
        return Check("enqueue", True, "every group is let in: there is no action enqueue")
    if not job.is_pending:
        return Check("enqueue", True, "it was let in")
    notes = [text for (uid, text) in round.outcome.notes if uid == job.uid]
    needs = " and ".join(f"{text} {name}" for name, text in amounts_text(job.minimum()).items()) or "nothing"
    return Check("enqueue", False, f"not let in, needs {needs}: {'; '.join(notes) or 'its turn has not come yet'}")


def _quota(round: Round, job: Job) -> Check:
    plugin, account = _account(round, job.queue)
    if account is None:
        return Check("quota", None, "no account is kept of its queue")
    wanted = _sum(task.request for task in job.in_status(TaskStatus.PENDING)) if job.tasks else job.minimum()
    ceiling = account.deserved if plugin == "proportion" else account.limit
    lacking = [
        f"asks for {_said(name, amount)} {name}, and the queue has {_said(name, account.allocated.get(name))} of "
        f"{_said(name, ceiling.get(name)) or 'any'}{_kept_text(name, account)}"
        for name, amount in wanted.items()
        if name != PODS and amount and account.allocated.get(name) + amount >= ceiling.get(name) + 0.1
    ]
    if not lacking:
        return Check("quota", True, "its queue has room for it")
    return Check("quota", None if job.is_ready else False, "; ".join(lacking))


def _kept_text(name: str, account: Account) -> str:
    kept = account.inqueue.get(name)
    return f" ({_said(name, kept)} kept for groups that were let in)" if kept else ""


def _gang_check(job: Job, round: Round) -> Check:
    invalid = round.tiers.job_valid(job)
    counts = f"{job.counts.ready} of {len(job.tasks)} pods have places, {job.min_available} are needed"
    if invalid is not None:
        return Check("gang", False, f"{invalid.message or invalid.reason}; {counts}")
    return Check("gang", True if job.is_ready else None, counts)


def _topology(round: Round, job: Job) -> Check:
    if not round.topology.ready:
        return Check("topology", False, "the HyperNodes make no tree")
    where = job.allocated_hyper_node
    return Check("topology", True if where else None, f"in {where}" if where else "no HyperNode was chosen yet")


def _nodes(job: Job) -> Check:
    told = _fit_errors(job)
    if not told:
        return Check("nodes", True if job.is_ready else None, "no node refused it")
    return Check("nodes", None if job.is_ready else False, "; ".join(f"{text} ({count} pods)" for text, count in told))
