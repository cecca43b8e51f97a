"""When a decision of Koordinator's scheduler and ours agree, and what is left to chance in its texts.

The same nodes are feasible, every plugin's score of each is equal, the chosen node is among the best, the message is
equal up to what it says of preemption, and what was written on the pod is equal as JSON. Words in some brackets come in
random order in the original.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.kube.replay.replay import score_differences

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.kube.replay.replay import FoundDecision

Differences = Iterator[tuple[str, Any, Any]]
_UNORDERED = re.compile(r"(exceedDimensions: |invalid resource device requests: )\[([^\]]*)\]")
_PREEMPTION = "preemption:"
_NOT_RECORDED = {
    "scheduling.koordinator.sh/bind-gang-group-id", "scheduling.koordinator.sh/bind-gang-member-count",
}  # fmt: skip
"""Former names of annotations, which are written beside today's."""


def decision_differences(decision: Doc, found: FoundDecision, *, messages: bool = True) -> Differences:
    """Where a recorded decision and ours differ in nodes, scores and, unless it is compared later, message."""
    recorded = decision.get("scores") or {}
    node = decision.get("node") or decision.get("assumed")
    feasible = sorted(recorded) or ([node] if node else [])
    ours = sorted(found.feasible)
    late = found.message is not None and decision.get("node") is None and len(ours) == 1
    if feasible != ours and not (late and not feasible):
        yield "feasible", feasible, ours
    elif recorded:
        yield from score_differences(recorded, found.scores)
        if node is not None and node not in found.best:
            yield "node", node, sorted(found.best)
    said, got = comparable(decision.get("message")), comparable(found.message)
    if messages and said != got and not decision.get("assumed"):
        yield "message", said, got


def comparable(message: str | None) -> str | None:
    """A message without what is left to chance."""
    if message is None:
        return None
    kept = message.split(_PREEMPTION)[0].strip().rstrip(",")
    head, stop, tail = kept.partition(". ")
    if "Reservation(s)" in tail:
        kept = f"{head}{stop}{', '.join(sorted(tail.split(', ')))}"
    return _UNORDERED.sub(lambda found: f"{found[1]}[{' '.join(sorted(found[2].split()))}]", kept)


def annotation_differences(decision: Doc, written: Mapping[str, str]) -> Differences:
    """Annotations that were not written, or otherwise."""
    recorded: Mapping[str, str] = decision.get("annotations") or {}
    for key in sorted({*recorded, *written} - _NOT_RECORDED):
        if key in recorded and key in written and _value(recorded[key]) == _value(written[key]):
            continue
        yield f"annotations.{key}", recorded.get(key), written.get(key)


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
