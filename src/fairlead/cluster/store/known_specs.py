"""KnownSpecs: specs of pods that were decoded before, by their bytes.

Pods that differ only in name are the common case: thousands of one template. The spec of such a pod is decoded twice;
all that come after the second share its result. A spec is kept when it comes again, so that specs that never do cost no
memory. Everything else of a new pod is decoded each time.

Invariant: a document is the same, to the order of its fields, as if the whole of it had been decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.cluster.store import schema
from fairlead.cluster.store.objects import compact, private_copy
from fairlead.core.model.kinds import POD

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

Check = Callable[["Doc"], None]
_REMEMBERED = 2048
_HASHES = 8192


class Recurring:
    """Says which encodings came before. It keeps their hashes alone: a false answer only keeps a spec too soon."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()

    def came_before(self, encoding: bytes) -> bool:
        mark, hashes = hash(encoding), self._hashes
        if mark in hashes:
            return True
        if len(hashes) >= _HASHES:
            hashes.clear()
        hashes.add(mark)
        return False


class KnownSpecs:
    def __init__(self) -> None:
        self._specs: dict[bytes, Doc] = {}
        self._recurring = Recurring()

    def decode(self, body: Any, check: Check) -> schema.Decoded:
        """A copy of a pod's document, decoded."""
        encoding = _encoding_of_spec(body)
        spec = self._specs.get(encoding) if encoding else None
        if spec is None:
            decoded = decode_copy(POD, body, check)
            if encoding and not decoded.unknown and "spec" in decoded.doc and self._recurring.came_before(encoding):
                if len(self._specs) >= _REMEMBERED:
                    self._specs.clear()
                self._specs[compact(encoding)] = decoded.doc["spec"]
            return decoded
        around = private_copy({key: {} if key == "spec" else value for key, value in body.items()})
        check(around)
        doc, unknown = schema.decode(POD, around)
        doc["spec"] = spec  # in the place of the empty one
        return schema.Decoded(doc, unknown)


def decode_copy(kind: Kind, body: Any, check: Check) -> schema.Decoded:
    """A copy of what a writer handed in, decoded. `check` sees the copy first, and may fill in what is missing."""
    doc = private_copy(body)
    check(doc)
    return schema.decode(kind, doc)


def _encoding_of_spec(body: Any) -> bytes:
    """Empty if there is none, or none that could be encoded."""
    spec = body.get("spec") if isinstance(body, dict) else None
    try:
        return orjson.dumps(spec) if spec else b""
    except (TypeError, RecursionError):
        return b""
