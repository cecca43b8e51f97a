"""Documents for controllers to look at, without a Store behind them, and what an API would answer to their writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairlead.core.model.flow import Change, Controller, Doc, Happened, Reply, Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.errors import ApiError


class Documents:
    """Documents by kind and name: a DocView. Putting or removing one gives the Change that a watch would tell."""

    def __init__(self) -> None:
        self._docs: dict[tuple[Kind, str, str], Doc] = {}
        self._version = 0

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        return self._docs.get((kind, namespace, name))

    def list(self, kind: Kind, namespace: str = "") -> Iterable[Doc]:
        return [doc for key, doc in self._docs.items() if key[0] is kind and namespace in ("", key[1])]

    def put(self, kind: Kind, doc: Doc) -> Change:
        metadata = {"uid": f"uid-{doc['metadata']['name']}", **doc["metadata"]}
        self._version += 1
        metadata["resourceVersion"] = str(self._version)
        key = (kind, metadata.get("namespace", ""), metadata["name"])
        happened = Happened.MODIFIED if key in self._docs else Happened.ADDED
        self._docs[key] = {**doc, "metadata": metadata}
        return Change(happened, kind, self._docs[key])

    def remove(self, kind: Kind, namespace: str, name: str) -> Change:
        return Change(Happened.DELETED, kind, self._docs.pop((kind, namespace, name)))


def created(documents: Documents, write: Write, name: str) -> tuple[Reply, Change]:
    """What an API would answer to a create, and what its watch would tell."""
    change = documents.put(write.kind, {**write.body, "metadata": {**write.body["metadata"], "name": name}})
    return Reply(write, change.doc), change


def refused(write: Write, error: ApiError) -> Reply:
    return Reply(write, None, error)


def said(writes: Iterable[Write], *verbs: Verb) -> list[Write]:
    """The writes that are not announcements."""
    return [write for write in writes if write.kind.kind != "Event" and (not verbs or write.verb in verbs)]


def settle(controller: Controller, now: float, *changes: Change, replies: Iterable[Reply] = ()) -> list[Write]:
    return said(controller.step(now, list(changes), list(replies)))


def patched(doc: Doc, write: Write) -> Doc:
    """A document after a merge patch."""
    merged: Doc = _merge(doc, write.body)
    return merged


def _merge(old: Any, new: Any) -> Any:
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new
    merged = {key: _merge(old.get(key), value) for key, value in new.items() if value is not None}
    return {**{key: value for key, value in old.items() if key not in new}, **merged}
