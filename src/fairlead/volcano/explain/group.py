"""Explanations of Volcano's PodGroups: how far a group has come, and which check stopped it.

They are made from the round that is under way or was closed last, on request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.core.engine.explain.shortages import of_members
from fairlead.core.model.gang_explanation import GangExplanation
from fairlead.volcano.explain.queue import (
    NAMED,
    PROPORTION,
    QueueAccounts,
    amounts_text,
    in_turn,
    owners_of,
    said,
    total,
)
from fairlead.volcano.explain.round_lacks import hyper_node_domains, needed_tasks
from fairlead.volcano.explain.victims import who_might_go
from fairlead.volcano.kinds import VC_POD_GROUP
from fairlead.volcano.records.amounts import PODS
from fairlead.volcano.records.groups import made_for
from fairlead.volcano.records.queue_explanation import JobExplanation, QueueCheck
from fairlead.volcano.records.tasks import ALLOCATED_CLASS, TaskStatus

if TYPE_CHECKING:
    from fairlead.core.model.group import PodGroup
    from fairlead.volcano.explain.queue import QueueAccount
    from fairlead.volcano.rounds.driver import RoundDriver
    from fairlead.volcano.rounds.round import Job, Round

_TEXTS = 5
_UID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def explain_job(driver: RoundDriver, namespace: str, name: str) -> JobExplanation | None:
    """The explanation of a group; None if this profile does not know it."""
    round = driver.latest
    if round is None:
        return None
    groups = round.cluster.object_index.of(VC_POD_GROUP)
    key = _key_of(groups.values(), namespace, name)
    job = round.jobs.get(key)
    if job is not None:
        return _explained(driver, round, job)
    group: PodGroup | None = groups.get(key)
    if group is None:
        return None
    queue = group.queue or driver.rounds.default_queue
    missing = QueueCheck("queue", False, f'queue "{queue}" does not exist') if queue not in round.queues else None
    checks = (missing or QueueCheck("queue", None, "the next round will look at it"),)
    return JobExplanation(_gang(driver, group, None, checks), queue, group.phase, checks)


def _key_of(groups: Iterable[PodGroup], namespace: str, name: str) -> str:
    """The group of that name, or the one that was made for somebody of that name: `<job>-<uid>` for a Volcano job,
    `podgroup-<uid>` for other owners of pods."""
    named = {group.key: group for group in groups if group.namespace == namespace}
    key = f"{namespace}/{name}"
    if key in named:
        return key
    return next((one.key for one in named.values() if made_for(one) == name or _is_of_job(one.name, name)), key)


def _is_of_job(group: str, job: str) -> bool:
    return group.startswith(f"{job}-") and _UID.fullmatch(group, len(job) + 1) is not None


def _explained(driver: RoundDriver, round: Round, job: Job) -> JobExplanation:
    checks = tuple(_checks(round, job))
    waiting = in_turn(round, (one for one in round.jobs.values() if one.queue == job.queue))
    before = waiting[: waiting.index(job)] if job in waiting else []
    return JobExplanation(
        gang=_gang(driver, job.group, job, checks),
        queue=job.queue,
        phase=job.phase,
        checks=checks,
        place=len(before) + 1 if job in waiting else None,
        waiting=len(waiting),
        before=tuple(one.uid for one in before[:NAMED]),
        owners=owners_of(before[:NAMED]),
    )


def _gang(driver: RoundDriver, group: PodGroup, job: Job | None, checks: Sequence[QueueCheck]) -> GangExplanation:
    round = driver.latest
    assert round is not None
    ready = job is not None and job.is_ready
    ended = _ended(group, job)
    failed = next((check for check in checks if check.passed is False), None)
    where = Counter() if job is None else Counter(_places(round, job))
    blockers = () if job is None else tuple(_fit_errors(job))
    waiting = [] if job is None else [task.pod.request for task in job.in_status(TaskStatus.PENDING)]
    return GangExplanation(
        namespace=group.namespace,
        name=group.name,
        api=VC_POD_GROUP.group,
        scheduler=driver.profile.name,
        verdict=(
            "Completed"
            if _is_over(group, job)
            else "Scheduled"
            if ready
            else "Unschedulable"
            if failed is not None
            else "Waiting"
        ),
        message="" if ready or failed is None else f"{failed.name}: {failed.text}",
        ended=ended,
        owner=made_for(group),
        at=round.now,
        attempts=driver.counted,
        minimum=group.min_member,
        members=_waiting_pods(round, group) if job is None else len(job.tasks),
        scheduled=0 if job is None else job.counts.ready,
        fits=0 if job is None else job.counts.of(TaskStatus.SUCCEEDED) + where.total(),
        where=where,
        domains=() if job is None or ready else hyper_node_domains(round, job),
        considered=() if job is None else who_might_go(driver, round, job),
        blockers=blockers,
        shortages=of_members(waiting, [text for text, _ in blockers], round.cluster.table),
    )


def _waiting_pods(round: Round, group: PodGroup) -> int:
    """The pods of a group that no round looks at."""
    gangs = round.cluster.gangs.named(group.namespace, group.name)
    return max((len(gang) for gang in gangs), default=0)


def _places(round: Round, job: Job) -> Iterator[str]:
    """Nodes of the tasks that have a place, are promised one, or found one in an attempt that was taken back."""
    for task in job.tasks.values():
        if task.status in ALLOCATED_CLASS or task.status is TaskStatus.PIPELINED:
            yield round.cluster.table.name(task.row)
        elif task.status is TaskStatus.PENDING and task.last is not None and task.last.row >= 0:
            yield round.cluster.table.name(task.last.row)


def _is_over(group: PodGroup, job: Job | None) -> bool:
    """Whether all pods of the group have ended, also if they were deleted since."""
    if job is None or not job.tasks:
        return group.phase == "Completed"
    return all(task.status in (TaskStatus.SUCCEEDED, TaskStatus.FAILED) for task in job.tasks.values())


def _ended(group: PodGroup, job: Job | None) -> tuple[int, int]:
    """How many pods succeeded and failed: counted if they exist, else from the group's status."""
    if job is None or not job.tasks:
        return group.counted[1:]
    return job.counts.of(TaskStatus.SUCCEEDED), job.counts.of(TaskStatus.FAILED)


def _share_used(job: Job, accounts: QueueAccounts) -> str:
    """Why a queue is passed over: it has its share."""
    own = accounts.own
    if own is None or not own.deserved.less_equal(own.allocated):
        return ""
    return f": queue {job.queue} has all that it deserves, and others come first"


def _fit_errors(job: Job) -> list[tuple[str, int]]:
    texts = Counter(errors.message for uid, errors in job.fit_errors.items() if uid in job.tasks)
    return texts.most_common(_TEXTS)


def _checks(round: Round, job: Job) -> Iterator[QueueCheck]:
    """The checks that a group must pass, in their order."""
    accounts = QueueAccounts(round, job.queue)
    yield _queue(round, job, accounts)
    if _is_over(job.group, job):
        succeeded, failed = _ended(job.group, job)
        yield QueueCheck("gang", True, f"all its pods have ended: {succeeded} succeeded, {failed} failed")
        return
    yield _entry(round, job)
    yield _quota(round, job, accounts)
    yield _gang_check(job, round)
    if job.contains_topology:
        yield _topology(round, job)
    yield _nodes(job, accounts)


def _entry(round: Round, job: Job) -> QueueCheck:
    if "enqueue" not in round.settings.actions:
        return QueueCheck("enqueue", True, "every group is let in: there is no action enqueue")
    if not job.is_pending:
        return QueueCheck("enqueue", True, "it was let in")
    notes = [text for (uid, text) in round.outcome.notes if uid == job.uid]
    needs = " and ".join(f"{text} {name}" for name, text in amounts_text(job.minimum()).items()) or "nothing"
    return QueueCheck("enqueue", False, f"not let in, needs {needs}: {'; '.join(notes) or 'its turn has not come yet'}")


def _queue(round: Round, job: Job, accounts: QueueAccounts) -> QueueCheck:
    queue = round.queues[job.queue].queue
    if accounts.trouble:
        return QueueCheck("queue", False, f"{job.queue} can have nothing: {accounts.trouble}")
    return QueueCheck("queue", queue.open, f"{job.queue} is {queue.state or 'not opened yet'}")


def _quota(round: Round, job: Job, accounts: QueueAccounts) -> QueueCheck:
    """The check whether the queue and all its ancestors have room for the pending pods."""
    if accounts.own is None:
        return QueueCheck("quota", None, "no account is kept of its queue")
    if not job.tasks:
        return QueueCheck("quota", None, "it has no pods that ask for anything")
    wanted = total(task.request for task in job.in_status(TaskStatus.PENDING))
    lacking = [
        f"asks for {said(name, amount)} {name}, and queue {one.name} has {said(name, one.allocated.get(name))} of "
        f"{said(name, accounts.ceiling(one, name)) or 'any'}{_kept_text(name, one)}"
        for one in accounts.line
        for name, amount in wanted.items()
        if name != PODS and amount and one.allocated.get(name) + amount >= accounts.ceiling(one, name) + 0.1
    ]
    if not lacking:
        return QueueCheck("quota", True, "its queue has room for it")
    return QueueCheck("quota", None if job.is_ready else False, "; ".join([*lacking, *_waits_as_well(round, job)]))


def _waits_as_well(round: Round, job: Job) -> Iterator[str]:
    """The groups of other queues that need more than their queue deserves, as this one does: in the original none of
    them starts (`large_gangs_wait_for_each_other`)."""
    if not round.quirks.large_gangs_wait_for_each_other or not _is_beyond_deserved(round, job):
        return
    others = [one for one in round.jobs.values() if one.queue != job.queue and _is_beyond_deserved(round, one)]
    if others:
        named = " and ".join(f"{one.uid} of queue {one.queue}" for one in others)
        yield f"{named} waits for more than its queue deserves as well: they wait for each other"


def _is_beyond_deserved(round: Round, job: Job) -> bool:
    """Whether a waiting group needs more than proportion gives its queue, and not more than the queue may have."""
    accounts = QueueAccounts(round, job.queue)
    if job.is_ready or accounts.plugin != PROPORTION or accounts.own is None:
        return False
    wanted = total(task.request for task in needed_tasks(job)).add(job.allocated)
    own = accounts.own
    return bool(wanted.exceeding_requested(own.deserved, wanted)) and not wanted.exceeding_requested(own.limit, wanted)


def _kept_text(name: str, account: QueueAccount) -> str:
    kept = account.inqueue.get(name)
    return f" ({said(name, kept)} kept for groups that were let in)" if kept else ""


def _gang_check(job: Job, round: Round) -> QueueCheck:
    invalid = round.tiers.job_valid(job)
    needed = f"{job.min_available} {'is' if job.min_available == 1 else 'are'} needed"
    counts = f"{job.counts.ready} of {len(job.tasks)} pods have places, {needed}"
    if invalid is not None:
        return QueueCheck("gang", False, f"{invalid.message or invalid.reason}; {counts}")
    return QueueCheck("gang", True if job.is_ready else None, counts)


def _topology(round: Round, job: Job) -> QueueCheck:
    if not round.topology.ready:
        return QueueCheck("topology", False, "the HyperNodes make no tree")
    where = job.allocated_hyper_node
    domains, needed = hyper_node_domains(round, job), len(needed_tasks(job))
    if domains and domains[0].fits < needed:
        best = f"best {domains[0].level} {domains[0].name} has room for {domains[0].fits}"
        return QueueCheck("topology", False, f"needs {needed} in one {domains[0].level}; {best}")
    return QueueCheck("topology", True if where else None, f"in {where}" if where else "no HyperNode was chosen yet")


def _nodes(job: Job, accounts: QueueAccounts) -> QueueCheck:
    fit_errors = _fit_errors(job)
    if not fit_errors:
        beyond = len(list(job.in_status(TaskStatus.PENDING)))
        if job.is_ready and beyond:
            waits = f"{beyond} more {'pod waits' if beyond == 1 else 'pods wait'} beyond its minimum"
            return QueueCheck("nodes", None, f"{waits}, and no node was tried for them{_share_used(job, accounts)}")
        return (
            QueueCheck("nodes", True, "no node refused it")
            if job.is_ready
            else QueueCheck("nodes", None, "none was tried")
        )
    texts = (f"{text} ({count} {'pod' if count == 1 else 'pods'})" for text, count in fit_errors)
    return QueueCheck("nodes", None if job.is_ready else False, "; ".join(texts))
