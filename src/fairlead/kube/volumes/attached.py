"""AttachedVolumes: which volumes are attached on which row, how many of each driver, and how many a node can take.

A volume counts once per node however many pods use it, and also when an attachment is left that no pod uses. What a
pod's claim attaches depends on the claim, its volume and its class; a pod that was counted is counted again when one of
these changes, and only then. Counts and limits are columns by driver, so that judging a pod is a comparison of columns.

Invariant: `count(driver)[row]` is the number of distinct volumes of the driver that pods on the row use or attachments
to its node name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.storage import CSI_DRIVER_OF_PLUGIN
from fairlead.kube.volumes.csi_migration import (
    INLINE_DISKS,
    UNCOUNTED_PROVISIONERS,
    Identity,
    MigrationError,
    identity_of_inline,
    identity_of_volume,
)
from fairlead.kube.volumes.node_limits import VolumeLimits, driver_column
from fairlead.kube.volumes.pod_claims import claim_uses, not_owned

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.model.storage import Claim, Volume, VolumeAttachment
    from fairlead.core.state.object_index import KindIndex, ObjectIndex
    from fairlead.core.state.table import NodeTable

_Token = tuple[str, str]
"""Something that a count depends on: a letter for the kind, and the key."""
_UserKey = tuple[str, int]
"""Who attaches: a pod's uid or an attachment's name, and the row."""


class UnclearError(ValueError):
    """It cannot be said what a pod attaches."""


@dataclass(slots=True)
class _User:
    """Somebody who attaches volumes on a row, what was counted for it, and what that depends on."""

    pod: Pod | None
    row: int
    identities: frozenset[Identity] = frozenset()
    tokens: frozenset[_Token] = frozenset()


@dataclass(slots=True)
class _AttachmentPlaces:
    """Where attachments are: their names by node name and by row, and the node of each."""

    on_node: dict[str, set[str]] = field(default_factory=dict)
    on_row: dict[int, set[str]] = field(default_factory=dict)
    node_of: dict[str, str] = field(default_factory=dict)


class AttachedVolumes:
    def __init__(self, table: NodeTable, object_index: ObjectIndex) -> None:
        self._table = table
        self._claims: KindIndex = object_index.of(kinds.PERSISTENT_VOLUME_CLAIM)
        self._volumes: KindIndex = object_index.of(kinds.PERSISTENT_VOLUME)
        self._classes: KindIndex = object_index.of(kinds.STORAGE_CLASS)
        self._attachments: KindIndex = object_index.of(kinds.VOLUME_ATTACHMENT)
        self._seen = {"c": self._claims.version, "v": self._volumes.version, "s": self._classes.version}
        self._seen_attachments = -1
        self._users: dict[_UserKey, _User] = {}
        self._dependants: dict[_Token, set[_UserKey]] = {}
        self._used: dict[Identity, dict[int, int]] = {}
        self._left: dict[Identity, dict[int, int]] = {}
        self._counts: dict[str, NDArray[np.int64]] = {}
        self.limits = VolumeLimits(table, object_index)
        self._places = _AttachmentPlaces()
        self.unclear: dict[int, dict[str, str]] = {}
        """Rows with pods of which it cannot be said what they attach, and why."""

    # ---- reading ----

    def catch_up(self) -> None:
        """Take in what changed in the ObjectIndex."""
        self.limits.catch_up()
        self._follow_attachments()
        for letter, kind_index in (("c", self._claims), ("v", self._volumes), ("s", self._classes)):
            if self._seen[letter] == kind_index.version:
                continue
            touched = kind_index.since(self._seen[letter])
            self._seen[letter] = kind_index.version
            self._recount(self._users if touched is None else self._dependants_of(letter, touched))

    def count(self, driver: str) -> NDArray[np.int64]:
        return driver_column(self._counts, driver, 0, self._table.capacity)

    def rows_using(self, identity: Identity) -> Collection[int]:
        """Rows with a pod that uses a volume."""
        return self._used.get(identity, ())

    def identities_of(self, pod: Pod) -> frozenset[Identity]:
        """What a new pod attaches; raises LookupError with the claim's name if one is missing, UnclearError if it
        cannot be said."""
        return frozenset(identity for identity, _ in self._attaching(pod, new=True) if identity is not None)

    # ---- pods come and go ----

    def add(self, pod: Pod, row: int) -> None:
        user = self._users[pod.uid, row] = _User(pod, row)
        self._enter((pod.uid, row), user)

    def remove(self, pod: Pod, row: int) -> None:
        key = pod.uid, row
        self._leave(key, self._users.pop(key))

    def node_changed(self, row: int) -> None:
        """Another node, or none any more, has this row: its limits and attachments change."""
        for name in tuple(self._places.on_row.pop(row, ())):
            key = f"attachment {name}", row
            self._leave(key, self._users.pop(key))
        node = self._table.name(row)
        for name in self._places.on_node.get(node, ()) if node else ():
            self._place_attachment(name, row)
        self.limits.node_changed(row)

    def _dependants_of(self, letter: str, keys: Iterable[str]) -> set[_UserKey]:
        found: set[_UserKey] = set()
        for key in keys:
            found |= self._dependants.get((letter, key), set())
        return found

    def _recount(self, keys: Iterable[_UserKey]) -> None:
        for key in tuple(keys):
            user = self._users[key]
            self._leave(key, user)
            self._enter(key, user)

    def _enter(self, key: _UserKey, user: _User) -> None:
        try:
            found = list(self._attaching(user.pod) if user.pod is not None else self._left_behind(key[0]))
        except UnclearError as error:
            self.unclear.setdefault(user.row, {})[key[0]] = str(error)
            found = [(None, tuple(self._everything_about(user.pod)))] if user.pod is not None else []
        user.identities = frozenset(identity for identity, _ in found if identity is not None)
        user.tokens = frozenset(token for _, tokens in found for token in tokens)
        for token in user.tokens:
            self._dependants.setdefault(token, set()).add(key)
        place = self._used if user.pod is not None else self._left
        for identity in user.identities:
            self._change(place, identity, user.row, 1)

    def _leave(self, key: _UserKey, user: _User) -> None:
        place = self._used if user.pod is not None else self._left
        for identity in user.identities:
            self._change(place, identity, user.row, -1)
        for token in user.tokens:
            self._dependants[token].discard(key)
            if not self._dependants[token]:
                del self._dependants[token]
        if user.row in self.unclear:
            self.unclear[user.row].pop(key[0], None)
            if not self.unclear[user.row]:
                del self.unclear[user.row]

    def _change(self, place: dict[Identity, dict[int, int]], identity: Identity, row: int, by: int) -> None:
        before = self._is_there(identity, row)
        rows = place.setdefault(identity, {})
        rows[row] = rows.get(row, 0) + by
        if not rows[row]:
            del rows[row]
            if not rows:
                del place[identity]
        self.count(identity[0])[row] += self._is_there(identity, row) - before

    def _is_there(self, identity: Identity, row: int) -> int:
        return row in self._used.get(identity, ()) or row in self._left.get(identity, ())

    # ---- what a pod attaches ----

    def _attaching(self, pod: Pod, *, new: bool = False) -> Iterator[tuple[Identity | None, tuple[_Token, ...]]]:
        """Each volume of a pod: its identity, if it is one that is attached, and what that depends on."""
        for use in claim_uses(pod):
            if not use.name:
                raise UnclearError("PersistentVolumeClaim had no name")
            claim: Claim | None = self._claims.get(use.key)
            token = ("c", use.key)
            if claim is None:
                if new:
                    raise LookupError(use.name)
                yield None, (token,)
                continue
            if use.ephemeral and (complaint := not_owned(pod, claim)):
                raise UnclearError(complaint)
            yield self._identity_of_claim(claim), (token, ("v", claim.volume_name), ("s", claim.storage_class))
        for volume in pod.shape.volumes:
            if volume.source in INLINE_DISKS:
                try:
                    yield identity_of_inline(volume), ()
                except MigrationError as error:
                    raise UnclearError(f"converting volume({volume.name}) from inline to csi: {error}") from None

    def _everything_about(self, pod: Pod) -> Iterator[_Token]:
        return (("c", use.key) for use in claim_uses(pod))

    def _identity_of_claim(self, claim: Claim) -> Identity | None:
        volume: Volume | None = self._volumes.get(claim.volume_name) if claim.volume_name else None
        if volume is None:
            return self._identity_to_be(claim)
        try:
            identity = identity_of_volume(volume)
        except MigrationError:
            return None
        return identity if identity and all(identity) else None

    def _identity_to_be(self, claim: Claim) -> Identity | None:
        """A claim without a volume will get one from its class's driver, unlike any that there is."""
        storage_class = self._classes.get(claim.storage_class) if claim.storage_class else None
        if storage_class is None or storage_class.provisioner in UNCOUNTED_PROVISIONERS:
            return None
        driver = CSI_DRIVER_OF_PLUGIN.get(storage_class.provisioner, storage_class.provisioner)
        return (driver, f"\0{claim.key}") if driver else None

    # ---- attachments ----

    def _follow_attachments(self) -> None:
        kind_index = self._attachments
        if self._seen_attachments == kind_index.version:
            return
        touched = kind_index.since(self._seen_attachments) if self._seen_attachments >= 0 else None
        self._seen_attachments = kind_index.version
        for name in {*self._places.node_of, *kind_index} if touched is None else set(touched):
            self._follow_attachment(name)

    def _follow_attachment(self, name: str) -> None:
        before = self._places.node_of.pop(name, None)
        if before is not None:
            self._places.on_node[before].discard(name)
            row = self._table.row_of.get(before)
            if row is not None and name in self._places.on_row.get(row, ()):
                self._places.on_row[row].discard(name)
                key = f"attachment {name}", row
                self._leave(key, self._users.pop(key))
        attachment: VolumeAttachment | None = self._attachments.get(name)
        if attachment is None:
            return
        self._places.node_of[name] = attachment.node_name
        self._places.on_node.setdefault(attachment.node_name, set()).add(name)
        row = self._table.row_of.get(attachment.node_name)
        if row is not None:
            self._place_attachment(name, row)

    def _place_attachment(self, name: str, row: int) -> None:
        key = f"attachment {name}", row
        user = self._users[key] = _User(None, row)
        self._places.on_row.setdefault(row, set()).add(name)
        self._enter(key, user)

    def _left_behind(self, key: str) -> Iterator[tuple[Identity | None, tuple[_Token, ...]]]:
        """The volume of an attachment. Only one with a driver's source counts."""
        attachment: VolumeAttachment | None = self._attachments.get(key.removeprefix("attachment "))
        if attachment is None or not attachment.attacher or not attachment.volume_name:
            return
        volume: Volume | None = self._volumes.get(attachment.volume_name)
        token = ("v", attachment.volume_name)
        yield (attachment.attacher, volume.csi[1]) if volume is not None and volume.csi else None, (token,)
