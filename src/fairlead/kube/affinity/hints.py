"""Queueing hints of InterPodAffinity.

As in the original, the terms are taken as they are written: a namespace selector sees no labels here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Hint
from fairlead.core.model.documents import EMPTY
from fairlead.core.model.node import Node
from fairlead.core.model.pod import Pod

if TYPE_CHECKING:
    from fairlead.core.model.terms import AffinityTerm


def after_pod_change(pod: Pod, old: object, new: object) -> Hint:
    before, after = old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None
    if before is not None and after is not None and after.uid == pod.uid:
        return Hint.QUEUE
    if not _placed(before) or not _placed(after):
        return Hint.SKIP
    toward, away = pod.shape.pod_affinity, pod.shape.pod_anti_affinity
    if before is not None and after is not None:
        company = not _all_match(toward, before) and _all_match(toward, after)
        return _queue_if(company or (_all_match(away, before) and not _all_match(away, after)))
    if after is not None:
        return _queue_if(_all_match(toward, after))
    assert before is not None
    return _queue_if(_all_match(away, before) or _all_match(before.shape.pod_anti_affinity, pod))


def after_node_change(pod: Pod, old: object, new: object) -> Hint:
    if not isinstance(new, Node):
        return Hint.SKIP
    toward, away = pod.shape.pod_affinity, pod.shape.pod_anti_affinity
    if not isinstance(old, Node):
        return _queue_if(bool(away) or any(term.topology_key in new.labels for term in toward))
    for term in toward:
        value = new.labels.get(term.topology_key)
        if value is not None and value != old.labels.get(term.topology_key):
            return Hint.QUEUE
    for term in away:
        value = old.labels.get(term.topology_key)
        if value is not None and value != new.labels.get(term.topology_key):
            return Hint.QUEUE
    return Hint.SKIP


def _placed(pod: Pod | None) -> bool:
    """Whether a pod, if there is one, is on a node or nominated to one."""
    return pod is None or bool(pod.node_name or pod.nominated_node)


def _all_match(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    return bool(terms) and all(term.matches(pod.namespace, pod.labels, EMPTY) for term in terms)


def _queue_if(condition: bool) -> Hint:
    return Hint.QUEUE if condition else Hint.SKIP
