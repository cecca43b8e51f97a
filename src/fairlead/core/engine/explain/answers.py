"""What a Scheduler answers when it is asked about a pod, a group or a queue.

An answer is put together from what attempts and rounds recorded and from where things are now; nothing is scheduled
or evaluated for it. These functions read the scheduler's state, so they run on its own thread between two steps: ask
a runtime (`runtime/questions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.engine.explain.lacks import lacks_of
from fairlead.core.engine.explain.pod import waiting_in
from fairlead.core.engine.explain.shortages import names_amounts, shortages
from fairlead.core.framework.plugin import DeviceExplainer
from fairlead.core.model.attendance import Attendance
from fairlead.core.model.explanation import Explained, Explanation

if TYPE_CHECKING:
    from fairlead.core.engine.queue.entry import Waiting
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.model.lack import Lack
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.table import NodeTable


def about_pod(scheduler: Scheduler, namespace: str, name: str) -> Explanation | None:
    pod_state = scheduler.cluster.pods_by_key.get(f"{namespace}/{name}")
    if pod_state is None:
        return None
    pod = pod_state.seen
    waiting = scheduler.backlog.where(pod.uid)
    known = scheduler.explanations.of(pod.uid, waiting)
    if known is None and not pod.node_name:
        answers = (mode.about_pod(pod) for mode in scheduler.modes)
        known = next((answer for answer in answers if answer is not None), None)
    if known is not None:
        return _in_full(known, scheduler, pod)
    return Explanation(
        namespace,
        name,
        pod.uid,
        pod.scheduler_name,
        _verdict(pod, waiting),
        message=waiting.message if waiting else _unserved(scheduler, pod),
        node=pod.node_name,
        total_nodes=len(scheduler.cluster.table),
        waiting=waiting_in(waiting) if waiting else None,
    )


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


def about_group(scheduler: Scheduler, namespace: str, name: str) -> Explained | None:
    """The answer of the first mode that knows the group. PodMode is asked last, because it finds groups in the cluster,
    which has those of all modes."""

    def short_of(pods: Sequence[Pod], texts: Sequence[str]) -> tuple[Lack, ...]:
        return lacks_of(scheduler, pods, texts)

    answers = (mode.about_group(namespace, name, short_of) for mode in reversed(scheduler.modes))
    return next((answer for answer in answers if answer is not None), None)


def about_queue(scheduler: Scheduler, name: str) -> Explained | None:
    answers = (mode.about_queue(name) for mode in scheduler.modes)
    return next((answer for answer in answers if answer is not None), None)
