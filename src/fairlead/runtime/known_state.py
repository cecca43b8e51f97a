"""KnownState: what the API is known to say of an object, and whether a status patch would still change it.

A status that waits to be sent may have become true meanwhile: a pod that is refused twice for one reason requests the
same condition twice, and the second patch is made before anybody has seen what became of the first. Whether a patch
says anything new is therefore asked once more when it is sent, as kube-scheduler's dispatcher of API calls does. The
newest that is known is what a watch showed or, until the watch catches up, the API's answer to a write of our own.

Invariant: a document that an answer brought is kept only while no watch has shown it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fairlead.core.model.flow import PatchType, Verb, Write

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

Mirrored = Callable[["Kind", str, str], "Doc | None"]
_Key = tuple["Kind", str, str]

TIMES = frozenset({"lastTransitionTime", "lastProbeTime", "transitionID"})
"""Fields of a condition that differ between two that say the same."""
_SWEEP_ABOVE = 256


class KnownState:
    def __init__(self, mirrored: Mirrored) -> None:
        """`mirrored` returns what a watch last showed of an object; None if it has shown nothing."""
        self._mirrored = mirrored
        self._answers: dict[_Key, Doc] = {}
        self._sweep_above = _SWEEP_ABOVE

    def answered(self, write: Write, doc: Any) -> None:
        """The API did this and answered with the object."""
        if is_status_patch(write) and isinstance(doc, dict) and _version(doc) is not None:
            self._answers[write.kind, write.namespace, write.name] = doc
            if len(self._answers) > self._sweep_above:
                self._sweep()

    def says_already(self, write: Write) -> Doc | None:
        """The object, if this patch of its status would change nothing of it; None if it has to be sent."""
        if not is_status_patch(write):
            return None
        doc = self._newest((write.kind, write.namespace, write.name))
        return doc if doc is not None and _changes_nothing(write, doc) else None

    def _newest(self, key: _Key) -> Doc | None:
        mirrored, answer = self._mirrored(*key), self._answers.get(key)
        if answer is None:
            return mirrored
        if mirrored is not None and (_version(mirrored) or 0) >= (_version(answer) or 0):
            del self._answers[key]
            return mirrored
        return answer

    def _sweep(self) -> None:
        for key in [*self._answers]:
            if self._mirrored(*key) is None:
                del self._answers[key]  # it is gone
            else:
                self._newest(key)
        self._sweep_above = _SWEEP_ABOVE + len(self._answers)


def is_status_patch(write: Write) -> bool:
    return (
        write.verb is Verb.PATCH
        and write.patch_type in (PatchType.STRATEGIC, PatchType.MERGE)
        and isinstance(write.body, dict)
        and "status" in write.body
        and set(write.body) <= {"metadata", "status"}
    )


def _version(doc: Mapping[str, Any]) -> int | None:
    text = (doc.get("metadata") or {}).get("resourceVersion") or ""
    return int(text) if text.isdigit() else None


def _changes_nothing(write: Write, doc: Doc) -> bool:
    metadata = write.body.get("metadata") or {}
    if set(metadata) - {"uid"} or metadata.get("uid", doc["metadata"].get("uid")) != doc["metadata"].get("uid"):
        return False
    by_type = write.patch_type is PatchType.STRATEGIC
    return _contains(doc.get("status") or {}, write.body["status"] or {}, by_type=by_type)


def _contains(known: Any, asked: Any, *, by_type: bool) -> bool:
    """Whether merging `asked` into `known` leaves it as it is, but for times."""
    if isinstance(asked, dict):
        if not isinstance(known, dict):
            return False
        return all(
            _has_condition(known, value)
            if by_type and name == "conditions"
            else _contains(known.get(name), value, by_type=by_type)
            for name, value in asked.items()
            if name not in TIMES
        )
    if isinstance(asked, list):
        return bool(without_times(known) == without_times(asked))
    return bool(known == asked)


def _has_condition(known: Mapping[str, Any], asked: Any) -> bool:
    """Whether each condition that is requested is there; a strategic merge finds it by its type."""
    there = {condition.get("type"): condition for condition in known.get("conditions") or ()}
    return isinstance(asked, list) and all(
        condition.get("type") in there and _contains(there[condition["type"]], condition, by_type=False)
        for condition in asked
    )


def without_times(body: Any) -> Any:
    if isinstance(body, dict):
        return {name: without_times(value) for name, value in body.items() if name not in TIMES}
    return [without_times(each) for each in body] if isinstance(body, list) else body
