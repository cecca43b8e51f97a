"""Owned: how many pods of which owner start together, as far as the owners have been seen; and who must be watched.

Owners are read only if some pod needs them: `take_unwatched` returns a kind when the first pod needs it, and the
runtime that feeds the cluster then brings its objects. Until an owner is seen, its gang says what it waits for; one
that cannot be read holds up its own pods and nobody else's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.model.documents import FieldError, object_key
from fairlead.core.model.owner_sizes import OwnerRef, is_owner, owner_of, size_of
from fairlead.core.model.owners import absent, opts_in, owned_group, uncountable, unreadable
from fairlead.core.model.pod import gang_size

if TYPE_CHECKING:
    from fairlead.core.model.flow import Change
    from fairlead.core.model.group import PodGroup
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.gangs import Gang

_Key = tuple[str, str]
"""An owner: `jobs.batch` and `namespace/name`. Versions of a kind are the same objects."""


class Owned:
    def __init__(self) -> None:
        self._wanted: list[Kind] = []
        """Kinds of owners that have to be watched, in the order in which they were first needed."""
        self._unwatched: list[Kind] = []
        """Those of them that nobody has been asked to watch yet."""
        self.namespaces: set[str] = set()
        """Namespaces that request gangs of all owners that can be read."""
        self._sizes: dict[_Key, int | str] = {}
        """How many start together, or what is wrong with the document."""
        self._gangs: dict[_Key, dict[str, tuple[OwnerRef, Gang]]] = {}
        self._owners: dict[str, _Key] = {}
        """The owners of gangs, by the gangs' keys."""

    def take_unwatched(self) -> list[Kind]:
        """Kinds of owners that have to be watched since the last call."""
        if not self._unwatched:
            return []
        unwatched, self._unwatched = self._unwatched, []
        return unwatched

    def group_for(self, pod: Pod, gang: Gang) -> PodGroup:
        """The group of a gang's first member."""
        size = gang_size(pod.annotations, auto=True)
        if size:
            return owned_group(pod, size)
        ref = owner_of(pod)
        if ref is None:
            return owned_group(pod, 1, unknown=uncountable(pod))
        if ref.kind not in self._wanted:
            self._wanted.append(ref.kind)
            self._unwatched.append(ref.kind)
        self._gangs.setdefault(_key(ref), {})[gang.key] = (ref, gang)
        self._owners[gang.key] = _key(ref)
        return self._sized(owned_group(pod, 1), ref)

    def namespace_changed(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a namespace thinks otherwise about gangs from now on."""
        before = name in self.namespaces
        if opts_in(labels):
            self.namespaces.add(name)
        else:
            self.namespaces.discard(name)
        return before != opts_in(labels)

    def left(self, gang: Gang) -> None:
        """The last member has gone."""
        key = self._owners.pop(gang.key, None)
        if key is not None:
            del self._gangs[key][gang.key]
            if not self._gangs[key]:
                del self._gangs[key]

    def owner_changed(self, change: Change) -> list[tuple[PodGroup, PodGroup]]:
        """An owner came, changed or went: the groups for which that makes a difference, before and after."""
        if not is_owner(change.kind):
            return []
        key = (change.kind.resource, object_key(change.doc))
        if change.gone:
            self._sizes.pop(key, None)
        else:
            self._sizes[key] = _read(change)
        changed = []
        for ref, gang in self._gangs.get(key, {}).values():
            old = gang.group
            new = self._sized(old, ref) if old is not None else None
            if old is not None and new is not None and (old.min_member, old.unknown) != (new.min_member, new.unknown):
                gang.regroup(new)
                changed.append((old, new))
        return changed

    def _sized(self, group: PodGroup, ref: OwnerRef) -> PodGroup:
        size = self._sizes.get(_key(ref))
        if isinstance(size, int):
            return replace(group, min_member=size, unknown="")
        return replace(group, unknown=absent(ref) if size is None else unreadable(ref, size))


def _key(ref: OwnerRef) -> _Key:
    return ref.kind.resource, ref.key


def _read(change: Change) -> int | str:
    try:
        return size_of(change.kind, change.doc)
    except FieldError as error:
        return f"{error.field}: {error}"
