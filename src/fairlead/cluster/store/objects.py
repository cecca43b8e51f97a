"""What the Store keeps of an object, and the metadata that a server fills in.

A Record is one version of one object: its bytes as they go over the wire, its decoded document, or both. A DecodedCache
holds the documents of the youngest; it takes them away again, because 50,000 pods as dicts cost seven times what they
cost as JSON. Bytes of what our own controllers write (see `Write.conforms`) are made when they are requested, or when
the document goes: many versions of a pod that lives for a moment are never requested. Bytes of what others write are
made at once, because the answer to them and most watchers are served over HTTP.

Invariant: a Record never changes once it is made. A new version of an object is a new Record.
"""

from __future__ import annotations

from collections import deque
from random import Random
from sys import getrefcount
from typing import TYPE_CHECKING, Any, cast

import orjson

from fairlead.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of generated names: no vowels, so no words, and nothing that looks like something else."""
GENERATED_SUFFIX = 5
LONGEST_GENERATED_STEM = 63 - GENERATED_SUFFIX
_VERSION_4 = 4 << 76 | 2 << 62
"""The bits of a UUID that say how it was made: at random, after RFC 4122."""
_RANDOM_BITS = (1 << 128) - 1 & ~(15 << 76 | 3 << 62)

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""


class Record:
    """One version of one object: `raw` is its JSON, `version` the resourceVersion inside it. It is made of its bytes,
    of its document, or of both."""

    __slots__ = ("_raw", "decoded", "name", "namespace", "topology", "version")

    def __init__(self, namespace: str, name: str, version: int, raw: bytes | None, doc: Doc | None = None) -> None:
        self.namespace, self.name, self.version, self._raw = namespace, name, version, raw
        self.decoded: Doc | None = doc
        self.topology: Doc | None = None
        """Of a Node that a pod was bound to: the labels that its pods take over (subresources.py)."""

    @property
    def raw(self) -> bytes:
        """The bytes. Another thread may take the document away meanwhile; it makes the bytes first."""
        raw = self._raw
        if raw is None:
            if (doc := self.decoded) is not None:
                self._raw = encode(doc)
            raw = self._raw
            assert raw is not None, "a record has its bytes or its document"
        return raw

    def forget_document(self) -> None:
        """Keep the bytes alone."""
        self.raw  # noqa: B018
        self.decoded = None

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def path(self) -> str:
        """Lists are in this order."""
        return f"{self.namespace}/{self.name}"

    @property
    def doc(self) -> Doc:
        """The document; decoded anew unless somebody recently did. Never to be modified."""
        return self.decoded or cast("Doc", orjson.loads(self._raw or self.raw))


_OURS = 2
"""References to a record that leaves the cache and that nobody else has: the variable's and the counting's."""
_SMALLEST_SWEEP = 256
"""Fewer records are not worth looking through for those that nobody has any more."""


class DecodedCache:
    """Keeps the documents of the most recently written or read records. Taking from it and dropping from it are
    single steps of the interpreter, so a reading thread needs no lock: at worst it decodes once more, or a record that
    it adds while unused ones are dropped has its document for as long as the record is there."""

    def __init__(self, size: int | None) -> None:
        """`size` None: a record keeps the document that it has for as long as there is the record."""
        self._size = size
        self._recent: deque[Record] = deque()
        self._smallest_sweep = 0 if size is None else min(_SMALLEST_SWEEP, size // 2)
        self._sweep_at = self._smallest_sweep
        """When there are so many, those that nobody else has any more are dropped."""

    def keep(self, record: Record) -> None:
        """Let a record have the document that it has, until many others came after it. While there is room, records
        that nobody else has any more are dropped whenever there are twice as many as were in use the last time: a cache
        that is large enough for all objects takes memory for those that there are."""
        if self._size is None:
            return
        recent = self._recent
        recent.append(record)
        if len(recent) > self._size:
            oldest = recent.popleft()
            if getrefcount(oldest) > _OURS:
                oldest.forget_document()
        elif len(recent) >= self._sweep_at:
            self._drop_unused()

    def _drop_unused(self) -> None:
        recent = self._recent
        known = list(recent)
        recent.clear()
        recent.extend([record for record in known if getrefcount(record) > _OURS + 1])  # the list is one more
        self._sweep_at = max(2 * len(recent), self._smallest_sweep)

    def doc(self, record: Record) -> Doc:
        doc = record.decoded
        if doc is None:
            doc = record.decoded = record.doc
            self.keep(record)
        return doc


def encode(doc: Doc) -> bytes:
    """A stored document as bytes. `apiVersion` and `kind` come first, so that a list can cut them off."""
    try:
        roomy = orjson.dumps({"apiVersion": doc["apiVersion"], "kind": doc["kind"], **doc})
    except (TypeError, RecursionError) as error:
        raise BadRequest(f"the object provided cannot be encoded: {error}") from error
    return compact(roomy)


def compact(roomy: bytes) -> bytes:
    """orjson leaves its bytes in a buffer of 8 KiB; what is kept for long is copied to its own size."""
    return bytes(memoryview(roomy))


def private_copy(body: Any) -> Doc:
    """A deep copy of what a writer handed in, which also proves that it is JSON."""
    if not isinstance(body, dict):
        raise BadRequest("the object provided is unrecognized (must be of type object)")
    try:
        return cast("Doc", orjson.loads(orjson.dumps(body)))
    except (TypeError, RecursionError, orjson.JSONDecodeError) as error:
        raise BadRequest(f"the object provided cannot be encoded: {error}") from error


def metadata_of(doc: Doc) -> dict[str, Any]:
    """The document's own metadata, put there if it has none."""
    metadata = doc.setdefault("metadata", {})
    if metadata is None:
        metadata = doc["metadata"] = {}
    if not isinstance(metadata, dict):
        raise BadRequest("the object provided is unrecognized (metadata must be of type object)")
    return cast("dict[str, Any]", metadata)


def new_uid(rng: Random) -> str:
    """A random (version 4) UUID from the Store's own generator, so that a simulation repeats itself."""
    digits = f"{rng.getrandbits(128) & _RANDOM_BITS | _VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def generated_name(stem: str, rng: Random) -> str:
    suffix = "".join(rng.choices(NAME_ALPHABET, k=GENERATED_SUFFIX))
    return stem[:LONGEST_GENERATED_STEM] + suffix


def status_details(kind: Kind, name: str) -> dict[str, Any]:
    """The `details` of a Status about one object."""
    details = {"name": name, "kind": kind.plural}
    if kind.group:
        details["group"] = kind.group
    return details


def not_found(kind: Kind, name: str) -> NotFound:
    return NotFound(f'{kind.resource} "{name}" not found', details=status_details(kind, name))


def already_exists(kind: Kind, name: str, *, going: bool = False) -> AlreadyExists:
    """`going`: the object of that name is being deleted, so that trying again later may help."""
    why = "object is being deleted: " if going else ""
    return AlreadyExists(f'{why}{kind.resource} "{name}" already exists', details=status_details(kind, name))


def conflict(kind: Kind, name: str, why: str, *, subresource: str = "") -> Conflict:
    plural = f"{kind.plural}/{subresource}" if subresource else kind.plural
    resource = f"{plural}.{kind.group}" if kind.group else plural
    return Conflict(
        f'Operation cannot be fulfilled on {resource} "{name}": {why}',
        details=status_details(kind, name) | {"kind": plural},
    )


def modified_meanwhile(kind: Kind, name: str) -> Conflict:
    return conflict(
        kind,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )


def success(kind: Kind, name: str, uid: str) -> Doc:
    """The Status that answers a delete which returns no object."""
    details = status_details(kind, name) | {"uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def unclassified(message: str) -> BadRequest:
    """A refusal that the real server gives without a reason and as a 500, though it is the client's mistake."""
    return BadRequest(message)


def unsupported_option(options: str, field: str, value: str, supported: str) -> Invalid:
    """A query parameter or option with a value that is none."""
    problem = f"Unsupported value: {value}: supported values: {supported}"
    cause = {"reason": "FieldValueNotSupported", "message": problem, "field": field}
    return Invalid(
        f'{options}.meta.k8s.io "" is invalid: {field}: {problem}',
        details={"group": "meta.k8s.io", "kind": options, "causes": [cause]},
    )


def wrong_uid(kind: Kind, namespace: str, name: str, *, wanted: str, actual: str) -> Conflict:
    """A write meant for another object of the same name."""
    registry = [kind.plural, namespace, name] if namespace else [kind.plural, name]
    return conflict(
        kind,
        name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{'/'.join(registry)}, ResourceVersion: 0,"
        f" AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {actual}",
    )


def qualified(kind: Kind) -> str:
    """A kind with its group, as complaints about fields name it."""
    return f"{kind.kind}.{kind.group}" if kind.group else kind.kind


def name_required(kind: Kind) -> Invalid:
    """An object that has no name and does not want one to be made."""
    text = "Required value: name or generateName is required"
    cause = {"reason": "FieldValueRequired", "message": text, "field": "metadata.name"}
    group = {"group": kind.group} if kind.group else {}
    return Invalid(
        f'{qualified(kind)} "" is invalid: metadata.name: {text}',
        details={**group, "kind": kind.kind, "causes": [cause]},
    )


def version_required(kind: Kind, name: str) -> Invalid:
    """An update that names no version to replace, of a kind that is never updated without one."""
    text = "must be specified for an update"
    cause = {
        "reason": "FieldValueInvalid",
        "message": f"Invalid value: 0: {text}",
        "field": "metadata.resourceVersion",
    }
    return Invalid(
        f'{kind.resource} "{name}" is invalid: metadata.resourceVersion: Invalid value: 0: {text}',
        details=status_details(kind, name) | {"causes": [cause]},
    )
