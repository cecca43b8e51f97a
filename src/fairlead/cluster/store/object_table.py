"""ObjectTable: the newest record of every object, by kind, namespace and name.

Other threads may read while one writes. Therefore each namespace is copied in one step of the interpreter, and a reader
never sees half a change.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fairlead.cluster.store.objects import Key, Record
    from fairlead.core.model.kinds import Kind

Records: TypeAlias = dict[str, dict[str, "Record"]]
"""By namespace and name."""
_NAME = attrgetter("name")


class ObjectTable:
    """Kinds that are served in several versions are kept under the stored one."""

    def __init__(self) -> None:
        self._by_kind: dict[Kind, Records] = {}
        self._changes: dict[Kind, int] = {}
        self._listed: dict[Kind, tuple[int | None, list[Record]]] = {}
        """Of kinds without namespaces: how often their objects were changed, and the last list with the count at which
        it was made. Admission reads a few such kinds for every pod."""

    def find(self, kind: Kind, namespace: str, name: str) -> Record | None:
        try:
            return self._by_kind[kind.storage][namespace if kind.namespaced else ""].get(name)
        except KeyError:
            return None

    def holds(self, kind: Kind) -> bool:
        """Whether there is any object of a stored kind."""
        return bool(self._by_kind.get(kind))

    def records(self, kind: Kind, namespace: str = "") -> list[Record]:
        """In a namespace or in all, in the order of a list. The answer is not to be changed."""
        if not kind.namespaced:
            return self._of_cluster(kind.storage)
        result: list[Record] = []
        by_namespace = self._by_kind.get(kind.storage)
        if not by_namespace:
            return result
        if namespace:
            wanted = [namespace]
        else:
            wanted = sorted(by_namespace, key=_with_slash) if len(by_namespace) > 1 else list(by_namespace)
        for each in wanted:
            result += sorted(by_namespace.get(each, {}).values(), key=_NAME)
        return result

    def _of_cluster(self, kind: Kind) -> list[Record]:
        """The same of a stored kind that has no namespaces, sorted once for all who ask before the next change."""
        count, listed = self._changes.get(kind), self._listed.get(kind)
        if listed is None or listed[0] != count:
            records = self._by_kind.get(kind, {}).get("", {})
            listed = self._listed[kind] = count, sorted(records.values(), key=_NAME)
        return listed[1]

    def put(self, kind: Kind, key: Key, record: Record | None) -> None:
        """Keep a record under a stored kind, or (None) drop the one that is there."""
        namespace, name = key
        try:
            records = self._by_kind[kind][namespace]
        except KeyError:
            records = self._by_kind.setdefault(kind, {}).setdefault(namespace, {})
        if record is not None:
            records[name] = record
        else:
            del records[name]
            if not records:
                del self._by_kind[kind][namespace]
        if not kind.namespaced:
            self._changes[kind] = self._changes.get(kind, 0) + 1

    def move(self, old: Kind, new: Kind, conform: Callable[[Kind, Record], Record]) -> Records:
        """Objects of a stored kind become objects of another one, in the form that `conform` gives them; returns what
        they were, for `put_back`."""
        kept = self._by_kind.pop(old, {})
        self._listed.pop(old, None)
        if kept:
            self._by_kind[new] = {
                namespace: {name: conform(new, record) for name, record in records.items()}
                for namespace, records in kept.items()
            }
        return kept

    def put_back(self, old: Kind, new: Kind, kept: Records) -> None:
        """Undo a `move` after which nothing of the new kind was changed."""
        self._by_kind.pop(new, None)
        self._listed.pop(new, None)
        if kept:
            self._by_kind[old] = kept


def _with_slash(namespace: str) -> str:
    """Namespaces sort as the beginnings of paths: `a-b/` before `a/`."""
    return namespace + "/"
