"""ObjectTable: the newest record of every object, by kind, namespace and name.

Other threads may read while one writes. Therefore each namespace is copied in one step of the interpreter, and a reader
never sees half a change.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.api.store.objects import Key, Record
    from fairlead.model.kinds import Kind

_NAME = attrgetter("name")


class ObjectTable:
    """Kinds that are served in several versions are kept under the stored one."""

    def __init__(self) -> None:
        self._by_kind: dict[Kind, dict[str, dict[str, Record]]] = {}

    def find(self, kind: Kind, namespace: str, name: str) -> Record | None:
        try:
            return self._by_kind[kind.storage][namespace if kind.namespaced else ""].get(name)
        except KeyError:
            return None

    def holds(self, kind: Kind) -> bool:
        """Whether there is any object of a stored kind."""
        return bool(self._by_kind.get(kind))

    def records(self, kind: Kind, namespace: str = "") -> list[Record]:
        """In a namespace or in all, in the order of a list."""
        result: list[Record] = []
        by_namespace = self._by_kind.get(kind.storage)
        if not by_namespace:
            return result
        if namespace and kind.namespaced:
            wanted = [namespace]
        else:
            wanted = sorted(by_namespace, key=_with_slash) if len(by_namespace) > 1 else list(by_namespace)
        for each in wanted:
            result += sorted(by_namespace.get(each, {}).values(), key=_NAME)
        return result

    def put(self, kind: Kind, key: Key, record: Record | None) -> None:
        """Keep a record under a stored kind, or (None) drop the one that is there."""
        namespace, name = key
        try:
            records = self._by_kind[kind][namespace]
        except KeyError:
            records = self._by_kind.setdefault(kind, {}).setdefault(namespace, {})
        if record is not None:
            records[name] = record
            return
        del records[name]
        if not records:
            del self._by_kind[kind][namespace]

    def move(self, old: Kind, new: Kind | None, conform: Callable[[Kind, Record], Record]) -> None:
        """Objects of a stored kind become objects of another one, in the form that `conform` gives them, or vanish."""
        kept = self._by_kind.pop(old, {})
        if new is not None and kept:
            self._by_kind[new] = {
                namespace: {name: conform(new, record) for name, record in records.items()}
                for namespace, records in kept.items()
            }


def _with_slash(namespace: str) -> str:
    """Namespaces sort as the beginnings of paths: `a-b/` before `a/`."""
    return namespace + "/"
