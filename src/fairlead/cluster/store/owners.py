"""What each write does to metadata.managedFields: the link between the verbs and the rules of ownership.

Owners are kept for objects that a client made which says who it is (the server takes the name from `fieldManager` or
the user agent) and for everything that was ever applied server-side. Pods, nodes, events and what else comes by the
thousand get owners only by apply; what our own controllers write has none unless the object has owners already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission import default
from fairlead.cluster.ownership.managers import (
    FieldOwner,
    OwnedDocument,
    OwnedFields,
    Ownership,
    apply_configuration,
    empty_document,
    track_update,
    with_holdings,
)
from fairlead.cluster.ownership.shape import TypeShape, shape_of
from fairlead.cluster.store.objects import private_copy
from fairlead.cluster.store.schema import decode
from fairlead.core.model import kinds
from fairlead.core.model.times import timestamp
from fairlead.errors import BadRequest, Invalid, UnsupportedMedia

if TYPE_CHECKING:
    from fairlead.cluster.ownership.versions import FindKind
    from fairlead.core.model.flow import Doc, Write
    from fairlead.core.model.kinds import Kind

IN_BULK = frozenset({
    kinds.POD, kinds.NODE, kinds.EVENT, kinds.LEASE, kinds.ENDPOINTS, kinds.ENDPOINT_SLICE, kinds.REPLICA_SET,
    kinds.CONTROLLER_REVISION,
})  # fmt: skip
LONGEST_MANAGER = 128


@dataclass(frozen=True, slots=True)
class Configuration:
    """An applied configuration, merged: the document to store, and who will own what of it."""

    doc: Doc
    holdings: dict[FieldOwner, OwnedFields]


class Owners:
    """`find` gives the kind of an apiVersion and a name, for owners that wrote in other versions."""

    def __init__(self, clock: Callable[[], float], find: FindKind) -> None:
        self._clock, self._find = clock, find

    def of_new(self, write: Write, doc: Doc, sent: Doc, configuration: Configuration | None) -> Doc:
        """A new object with its first owner, if it has one: of what it sent and of defaults. What admission filled in
        belongs to nobody, so that who applies less later does not take it away."""
        if configuration is not None:
            return with_holdings(doc, configuration.holdings)
        kind = write.kind.storage
        if not _said_name(write) or kind in IN_BULK:
            return doc
        owned = track_update(self._writer(write), empty_document(kind), default(kind, sent))["metadata"]
        entries = {"managedFields": owned["managedFields"]} if "managedFields" in owned else {}
        return {**doc, "metadata": {**doc["metadata"], **entries}}

    def of_changed(self, write: Write, after: Doc, old: Doc, configuration: Configuration | None, given: Any) -> Doc:
        """A changed object with its owners. If nothing but the times of owners changed, those stay as they were, so
        that a write which changes nothing makes no new version."""
        if configuration is not None:
            made = with_holdings(after, configuration.holdings)
        elif "managedFields" not in old["metadata"] and not given:
            return after
        else:
            made = track_update(self._writer(write), old, after, given)
        return old if _timeless(made) == _timeless(old) else made

    def configuration(self, write: Write, live: Doc | None) -> Configuration:
        """The body of an apply, merged into what is there. Raises Conflict if others own what it would change."""
        kind = write.kind
        if not _said_name(write):
            raise _bad_option("fieldManager", "FieldValueRequired", "Required value: is required for apply patch")
        if write.subresource not in ("", "status"):
            raise UnsupportedMedia("415: Unsupported Media Type")
        if not isinstance(write.body, dict):
            raise BadRequest(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
                f"{_JSON_NAMES.get(type(write.body), 'null')} into Go value of type map[string]interface {{}}"
            )
        config = private_copy(write.body)
        _check_configuration(kind, write, config)
        if kind.storage is not kind:  # a version is converted before it is decoded, and trusts the types of its fields
            decode(kind, config)
        applied: OwnedDocument = apply_configuration(
            self._writer(write), live, config, force=write.params.get("force") in ("true", "1", "")
        )
        return Configuration(applied.doc, applied.holdings)

    def _writer(self, write: Write) -> Ownership:
        fill = partial(default, write.kind.storage)
        return Ownership(write.kind, _said_name(write), timestamp(self._clock()), self._find, fill, write.subresource)


def _timeless(doc: Doc) -> Doc:
    """The document without the times at which its owners wrote."""
    entries = [{**entry, "time": ""} for entry in doc["metadata"].get("managedFields") or ()]
    return {**doc, "metadata": {**doc["metadata"], "managedFields": entries}}


_JSON_NAMES = {str: "string", int: "number", float: "number", bool: "bool", list: "array"}


def _said_name(write: Write) -> str:
    return write.params.get("fieldManager") or ""


def _check_configuration(kind: Kind, write: Write, config: Doc) -> None:
    given = config.get("apiVersion") or "", config.get("kind") or ""
    if given != (kind.api_version, kind.kind):
        group = given[0] if "/" in str(given[0]) else f"/{given[0]}"
        raise BadRequest(f"invalid object type: {group}, Kind={given[1]}")
    metadata = config.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise BadRequest("couldn't get accessor: object does not implement the Object interfaces")
    if "managedFields" in metadata:
        raise BadRequest("metadata.managedFields must be nil")
    problem = next(_undeclared(config, shape_of(kind), ""), None)
    if problem is not None:
        where = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
        group = kind.api_version if kind.group else f"/{kind.version}"
        raise BadRequest(
            f"failed to create typed patch object ({where}; {group}, Kind={kind.kind}): {problem}: field not declared"
            " in schema"
        )


def _undeclared(value: Any, shape: TypeShape, path: str) -> Any:
    """Paths of fields that the kind does not have."""
    if isinstance(value, dict):
        for name, member in value.items():
            if not shape.declares(name):
                yield f"{path}.{name}"
            else:
                yield from _undeclared(member, shape.member(name), f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _undeclared(item, shape.item(), f"{path}[{index}]")


def _bad_option(field: str, reason: str, text: str) -> Invalid:
    return Invalid(
        f'PatchOptions.meta.k8s.io "" is invalid: {field}: {text}',
        details={
            "group": "meta.k8s.io",
            "kind": "PatchOptions",
            "causes": [{"reason": reason, "message": text, "field": field}],
        },
    )


def check_patch_options(params: Any, *, applies: bool) -> None:
    """`force` is for apply alone."""
    if "force" in params and not applies:
        raise _bad_option("force", "FieldValueForbidden", "Forbidden: may not be specified for non-apply patch")


def owner_name(user_agent: str) -> str:
    """The name under which a client owns fields when it gives none: its program."""
    name = "".join(sign for sign in user_agent.partition("/")[0] if sign.isprintable())
    return name[:LONGEST_MANAGER] or "unknown"
