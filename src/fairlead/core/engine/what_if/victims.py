"""EvictionPreview: whom a workload would cost. Each victim with the rule that allows it, the work that would be lost
and where it would go next; and each pod beside a victim that stays, with the rule that spares it.

The rules are those that the decision left behind: the votes of a mode's plugins, the notes of a gang's preemption, the
priorities of kube's. Work lost is counted since the pod started, or since the moment that its annotation
`scheduling.fairlead.io/checkpointed-at` names, if its program keeps one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.model.explanation import ProtectedPod
from fairlead.core.model.times import seconds_of

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.trial import Trial, Victim
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.pod import Pod

CHECKPOINT = "scheduling.fairlead.io/checkpointed-at"
_NAMED = 100


@dataclass(frozen=True, slots=True)
class VictimForecast:
    """A pod that would be evicted. `next_node` is where its successor would go, `waits` why it would go nowhere."""

    namespace: str
    name: str
    priority: int
    node: str
    rule: str
    lost: float
    next_node: str = ""
    waits: str = ""

    def to_document(self) -> Doc:
        doc: Doc = {
            "namespace": self.namespace,
            "name": self.name,
            "priority": self.priority,
            "node": self.node,
            "rule": self.rule,
            "lostSeconds": round(self.lost, 3),
        }
        if self.next_node:
            doc["next"] = {"node": self.next_node}
        elif self.waits:
            doc["next"] = {"message": self.waits}
        return doc


@dataclass(frozen=True, slots=True)
class EvictionPreview:
    victims: tuple[VictimForecast, ...] = ()
    spared: tuple[ProtectedPod, ...] = ()

    def to_document(self) -> Doc:
        doc: Doc = {}
        if self.victims:
            doc["victims"] = [victim.to_document() for victim in self.victims]
        if self.spared:
            doc["spared"] = [pod.to_document() for pod in self.spared]
        return doc


def preview(trial: Trial, workload: Workload, before: Mapping[str, Sequence[Pod]]) -> EvictionPreview:
    """What a trial did to others. `before` has the pods of each node before it."""
    rules = dict(_rules(trial, workload))
    own = set(workload.uids)
    heirs = {victim.heir for victim in trial.victims}
    victims = [victim for victim in trial.victims if victim.pod.uid not in own | heirs]
    top = max((_priority(document) for document in workload.pods), default=0)
    forecasts = tuple(_forecast(trial, victim, rules, top) for victim in victims)
    gone = {victim.pod.key for victim in victims}
    spared = [one for one in rules.values() if one.name not in gone and not one.rule.startswith("evicted")]
    named = {one.name for one in spared}
    for node in dict.fromkeys(victim.node for victim in victims):
        spared += [_spared(pod, top) for pod in before.get(node, ()) if pod.key not in gone | named]
    return EvictionPreview(forecasts, tuple(spared[:_NAMED]))


def _rules(trial: Trial, workload: Workload) -> Iterator[tuple[str, ProtectedPod]]:
    """What the decisions about the workload's pods and groups noted of others, by their names."""
    groups = set()
    for document in workload.pods:
        namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
        explained = trial.scheduler.explain(namespace, name)
        for one in explained.considered if explained is not None else ():
            yield one.name, one
        pod_state = trial.scheduler.cluster.pods.get(document["metadata"]["uid"])
        if pod_state is not None and pod_state.seen.group_ref is not None:
            groups.add((namespace, pod_state.seen.group_ref.name))
    for namespace, name in sorted(groups):
        group = trial.scheduler.explain_group(namespace, name)
        for one in getattr(group, "considered", ()):
            yield one.name, one


def _forecast(trial: Trial, victim: Victim, rules: Mapping[str, ProtectedPod], top: int) -> VictimForecast:
    pod = victim.pod
    known = rules.get(pod.key)
    noted = next((one.rule for one in trial.scheduler.ledger.of(pod.namespace) if one.uid == pod.uid), "")
    rule = known.rule if known is not None and known.rule != "evicted" else noted or _by_priority(pod, top)
    node = trial.place_of(victim.heir) if victim.heir else ""
    waits = "" if node else "it has no controller that would make it again"
    if victim.heir and not node:
        explained = trial.scheduler.explain(pod.namespace, f"{pod.name}+")
        waits = explained.message if explained is not None else "it waits"
    return VictimForecast(
        pod.namespace, pod.name, pod.priority, victim.node, rule, lost_work(pod, victim.at), node, waits
    )


def _by_priority(pod: Pod, top: int) -> str:
    if pod.priority >= top:
        return "its scheduler evicts it, and notes no rule"
    return f"its priority {pod.priority} is lower than {top}"


def _spared(pod: Pod, top: int) -> ProtectedPod:
    if pod.priority < top:
        return ProtectedPod(pod.key, pod.priority, "enough room is made without it")
    return ProtectedPod(pod.key, pod.priority, f"its priority {pod.priority} is not lower than {top}")


def lost_work(pod: Pod, now: float) -> float:
    """Seconds of work that end with a pod: since it started, or since its last checkpoint."""
    if pod.start_time is None:
        return 0.0
    since = pod.start_time
    if text := pod.annotations.get(CHECKPOINT):
        try:
            since = max(since, seconds_of(text))
        except ValueError:
            return max(0.0, now - since)
    return max(0.0, now - since)


def _priority(document: Doc) -> int:
    return int(document["spec"].get("priority") or 0)
