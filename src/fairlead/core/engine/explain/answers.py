"""What a Scheduler answers when it is asked about a pod, a group or a queue.

An answer is put together from what attempts and rounds recorded and from where things are now; nothing is scheduled
or evaluated for it. These functions read the scheduler's state, so they run on its own thread between two steps: ask
a runtime (`runtime/questions.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.engine.explain.gang import described
from fairlead.core.engine.explain.lacks import domain_lack, lacks_of
from fairlead.core.engine.explain.plugin_gangs import explain_plugin_gang
from fairlead.core.engine.explain.pod import waiting_in
from fairlead.core.engine.explain.shortages import names_amounts, of_members, shortages
from fairlead.core.framework.plugin import DeviceExplainer
from fairlead.core.model.attendance import Attendance
from fairlead.core.model.explanation import Explanation
from fairlead.volcano.explain.group import explain_job
from fairlead.volcano.explain.queue import explain_queue
from fairlead.volcano.explain.round_lacks import needed_tasks, queue_lacks
from fairlead.volcano.explain.waiting_pod import explained_by_round

if TYPE_CHECKING:
    from fairlead.core.engine.queue.entry import Waiting
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.model.gang_explanation import GangExplanation
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.table import NodeTable
    from fairlead.volcano.records.queue_explanation import JobExplanation, QueueExplanation
    from fairlead.volcano.rounds.driver import RoundDriver


def about_pod(scheduler: Scheduler, namespace: str, name: str) -> Explanation | None:
    pod_state = scheduler.cluster.pods_by_key.get(f"{namespace}/{name}")
    if pod_state is None:
        return None
    pod = pod_state.seen
    waiting = scheduler.backlog.where(pod.uid)
    known = scheduler.explanations.of(pod.uid, waiting)
    if known is not None:
        return _in_full(known, scheduler, pod)
    for driver in scheduler.drivers:
        if (report := driver.why(pod.uid)) is not None and not pod.node_name:
            return _in_full(explained_by_round(driver, report), scheduler, pod)
    return Explanation(
        namespace, name, pod.uid, pod.scheduler_name, _verdict(pod, waiting),
        message=waiting.message if waiting else _unserved(scheduler, pod), node=pod.node_name,
        total_nodes=len(scheduler.cluster.table), waiting=waiting_in(waiting) if waiting else None,
    )  # fmt: skip


def _in_full(explanation: Explanation, scheduler: Scheduler, pod: Pod) -> Explanation:
    """The same with amounts, devices and, of a pod that waits, what is short for it."""
    explanation = _with_devices(_with_amounts(explanation, pod, scheduler.cluster.table), scheduler, pod)
    if explanation.node or pod.node_name:
        return explanation
    texts = [reason for blocker in explanation.blockers for reason in blocker.reasons]
    return replace(explanation, lacks=lacks_of(scheduler, [pod], texts))


def _with_amounts(explanation: Explanation, pod: Pod, table: NodeTable) -> Explanation:
    texts = [reason for blocker in explanation.blockers for reason in blocker.reasons]
    nodes = [name for one in explanation.blockers if any(map(names_amounts, one.reasons)) for name in one.nodes]
    return replace(explanation, shortages=shortages(pod.request, texts, table, nodes))


def _with_devices(explanation: Explanation, scheduler: Scheduler, pod: Pod) -> Explanation:
    """The same with what there is of devices, if a plugin of devices refused the pod."""
    profile = scheduler.profiles.get(pod.scheduler_name)
    if explanation.node or profile is None:
        return explanation
    asked = [plugin for plugin in profile.plugins() if isinstance(plugin, DeviceExplainer)]
    refusing = {blocker.plugin for blocker in explanation.blockers}
    found = [one for plugin in asked if plugin.name in refusing for one in plugin.details(pod, scheduler.cluster)]
    return replace(explanation, devices=tuple(found)) if found else explanation


def _unserved(scheduler: Scheduler, pod: Pod) -> str:
    """What to say of a pod that names another scheduler; nothing if it is ours or has a node."""
    if pod.node_name or pod.scheduler_name in scheduler.profiles:
        return ""
    return f"this scheduler leaves it alone: {Attendance(frozenset(scheduler.profiles)).unserved(pod.scheduler_name)}"


def _verdict(pod: Pod, waiting: Waiting | None) -> str:
    if pod.node_name:
        return "Scheduled"
    return "Gated" if waiting is not None and waiting.queue == "gated" else "Waiting"


def about_group(scheduler: Scheduler, namespace: str, name: str) -> GangExplanation | JobExplanation | None:
    for driver in scheduler.drivers:
        job = explain_job(driver, namespace, name)
        if job is not None:
            return _with_round_lacks(scheduler, driver, job)
    for gang in scheduler.cluster.gangs.named(namespace, name):
        known = scheduler.gang_explanations.of(gang.key)
        places = (scheduler.backlog.where(uid) for uid in gang.members)
        explained = described(gang, known, next((place for place in places if place is not None), None))
        requests, texts = (pod.request for pod in gang.pending()), [text for text, _ in explained.blockers]
        explained = replace(explained, shortages=of_members(requests, texts, scheduler.cluster.table))
        if explained.verdict in ("Scheduled", "Completed"):
            return explained
        needed = max(0, gang.minimum - gang.scheduled)
        pods = gang.pending()[: needed or None]
        lacks = (*domain_lack(explained.domains, needed), *lacks_of(scheduler, pods, texts))
        return replace(explained, lacks=lacks)
    return explain_plugin_gang(scheduler, namespace, name)


def _with_round_lacks(scheduler: Scheduler, driver: RoundDriver, explained: JobExplanation) -> JobExplanation:
    round, gang = driver.latest, explained.gang
    job = None if round is None else round.jobs.get(f"{gang.namespace}/{gang.name}")
    if round is None or job is None or gang.verdict in ("Scheduled", "Completed"):
        return explained
    tasks = needed_tasks(job)
    domains = domain_lack(gang.domains, len(tasks))
    more = lacks_of(scheduler, [task.pod for task in tasks], [text for text, _ in gang.blockers])
    return replace(explained, gang=replace(gang, lacks=(*queue_lacks(round, job), *domains, *more)))


def about_queue(scheduler: Scheduler, name: str) -> QueueExplanation | None:
    found = (explain_queue(driver, name) for driver in scheduler.drivers)
    return next((explanation for explanation in found if explanation is not None), None)
