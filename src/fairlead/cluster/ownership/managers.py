"""metadata.managedFields: the owners of an object's fields, kept as writes come.

    apply    states a configuration: the manager owns what it states, gives up what it no longer states, and may not
             change what others own unless it forces
    update   anything else: the manager owns what it changed, no matter which manager owned it before

Each entry names its fields in the version in which its manager wrote them (versions.py). An applier is one owner in
whichever version it applies; its entry takes the version of its last apply.

An object has owners from its first write by a client that says who it is, or from its first apply. What the
cluster's own controllers make in bulk has none, because nobody would ever look (docs/decisions/0065).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from fairlead.cluster.ownership.fieldsets import (
    NONE,
    SERVERS_OWN,
    Fields,
    compare,
    fields_of,
    from_wire,
    spoken,
    to_wire,
)
from fairlead.cluster.ownership.merging import merged, without
from fairlead.cluster.ownership.shape import shape_of
from fairlead.cluster.ownership.versions import FindKind, VersionedStep, shown_as
from fairlead.cluster.store.schema import struct_of
from fairlead.errors import Conflict

if TYPE_CHECKING:
    from fairlead.cluster.ownership.shape import TypeShape
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

APPLY, UPDATE = "Apply", "Update"
BEFORE_FIRST_APPLY, CLIENT_SIDE = "before-first-apply", "kubectl-client-side-apply"
KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
OURSELVES = "fairlead"
MOST_UPDATERS = 10
"""Above this many update entries the oldest become one, as the original has it."""
ANCIENT = "ancient-changes"


class FieldOwner(NamedTuple):
    """The manager, operation, version and subresource of an entry; entries with the same four are one."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class OwnedFields:
    """What, and since when."""

    fields: Fields
    time: str = ""


Holdings = Mapping[FieldOwner, OwnedFields]


@dataclass(frozen=True, slots=True)
class Ownership:
    """A writer at a moment. `kind` is what it speaks, `find` knows the other versions of it, `fill` gives a document of
    the stored version its defaults."""

    kind: Kind
    manager: str
    time: str
    find: FindKind
    fill: Callable[[Doc], Doc]
    subresource: str = ""

    def owner(self, operation: str) -> FieldOwner:
        return FieldOwner(self.manager or OURSELVES, operation, self.kind.api_version, self.subresource)


def read_holdings(entries: Any) -> dict[FieldOwner, OwnedFields]:
    """The owners of an object. Raises ValueError for entries that make no sense."""
    found: dict[FieldOwner, OwnedFields] = {}
    for entry in entries or ():
        if not isinstance(entry, dict) or entry.get("operation") not in (APPLY, UPDATE):
            raise ValueError("metadata.managedFields has an entry without an operation")
        owner = FieldOwner(
            str(entry.get("manager") or ""),
            entry["operation"],
            str(entry.get("apiVersion") or ""),
            str(entry.get("subresource") or ""),
        )
        found[owner] = OwnedFields(from_wire(entry.get("fieldsV1") or {}), str(entry.get("time") or ""))
    return found


def write_holdings(holdings: Holdings) -> list[Doc]:
    ordered = sorted(
        holdings.items(), key=lambda one: (one[0].operation, one[1].time, one[0].manager, one[0].api_version, one[0][3])
    )
    return [_entry(owner, holding) for owner, holding in ordered if holding.fields]


def _entry(owner: FieldOwner, holding: OwnedFields) -> Doc:
    said = ("manager", owner.manager), ("operation", owner.operation), ("apiVersion", owner.api_version)
    entry: Doc = {key: value for key, value in (*said, ("time", holding.time)) if value}
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": to_wire(holding.fields)}
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


def with_holdings(doc: Doc, holdings: Holdings) -> Doc:
    metadata = {key: value for key, value in doc["metadata"].items() if key != "managedFields"}
    entries = write_holdings(holdings)
    if entries:
        metadata["managedFields"] = entries
    return {**doc, "metadata": metadata}


def empty_document(kind: Kind) -> Doc:
    """A new object before anybody wrote into it: the structs that are always there."""
    struct = struct_of(kind)
    always = {} if struct is None or struct.custom else {name: make() for name, make in struct.always}
    return {**always, "metadata": {}}


# -- update -----------------------------------------------------------------------------------------------------------


def track_update(writer: Ownership, old: Doc, new: Doc, given: Any = None) -> Doc:
    """The new state with its owners, both states in the stored version. `given` is what the writer itself said about
    owners, which it may."""
    known = _holdings(old)
    said = _said(given)
    holdings = known if said is None else said
    step = VersionedStep(writer.kind.storage, _plain(old), _plain(new), writer.find)
    difference = step.seen_in(writer.kind.api_version) or step.seen_in(writer.kind.storage.api_version)
    assert difference is not None
    changed = (difference.added | difference.modified) - SERVERS_OWN
    if not changed and not difference.removed:
        return with_holdings(new, holdings)
    owner = writer.owner(UPDATE)
    kept = {}
    for each, holding in holdings.items():
        seen = step.seen_in(each.api_version)
        if seen is not None:  # else its version is not served any more, and nobody knows what it meant
            taken = NONE if each == owner else (seen.added | seen.modified) - SERVERS_OWN
            kept[each] = replace(holding, fields=holding.fields - seen.removed - taken)
    mine = kept.get(owner, OwnedFields(NONE))
    if changed:
        kept[owner] = OwnedFields(mine.fields | changed, writer.time)
    return with_holdings(new, _bounded(kept, writer))


def _said(given: Any) -> dict[FieldOwner, OwnedFields] | None:
    """What a client wrote into managedFields; None when it says nothing of use. One empty entry resets everything."""
    if not isinstance(given, list) or not given:
        return None
    if given == [{}]:
        return {}
    try:
        return read_holdings(given)
    except ValueError:
        return None


def _bounded(holdings: dict[FieldOwner, OwnedFields], writer: Ownership) -> dict[FieldOwner, OwnedFields]:
    updates = sorted((o for o in holdings if o.operation == UPDATE), key=lambda owner: holdings[owner].time)
    surplus = updates[: max(0, len(updates) - MOST_UPDATERS)]
    if len(surplus) < 1:
        return holdings
    old = [holdings.pop(owner) for owner in surplus]
    ancient = FieldOwner(ANCIENT, UPDATE, writer.kind.api_version)
    gathered = frozenset[tuple[str, ...]]().union(*(one.fields for one in old))
    before = holdings.get(ancient, OwnedFields(NONE))
    holdings[ancient] = OwnedFields(before.fields | gathered, old[-1].time)
    return holdings


def _plain(doc: Doc) -> Doc:
    """The document without what is only bookkeeping."""
    metadata = doc.get("metadata") or {}
    return {**doc, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


def _holdings(doc: Doc) -> dict[FieldOwner, OwnedFields]:
    return read_holdings((doc.get("metadata") or {}).get("managedFields"))


# -- apply ------------------------------------------------------------------------------------------------------------


class OwnedDocument(NamedTuple):
    """The document to be admitted, and who will own what of it."""

    doc: Doc
    holdings: dict[FieldOwner, OwnedFields]
    owner: FieldOwner


def apply_configuration(writer: Ownership, live: Doc | None, config: Doc, *, force: bool) -> OwnedDocument:
    """What the live object (None: there is none yet) becomes when this configuration is applied."""
    shape, owner = shape_of(writer.kind), writer.owner(APPLY)
    stated = _owned_through(writer, fields_of(config, shape))
    if live is None:
        return OwnedDocument(config, {owner: OwnedFields(stated, writer.time)}, owner)
    holdings = _holdings(live) or _before_first_apply(writer, live, shape)
    plain = _plain(live)
    mine, others = _split(holdings, owner)
    doc = _merged(writer, plain, config, stated, mine, others)
    step = VersionedStep(writer.kind, plain, doc, writer.find)
    fights: dict[FieldOwner, Fields] = {}
    kept: dict[FieldOwner, OwnedFields] = {}
    for each, holding in others.items():
        seen = step.seen_in(each.api_version)
        if seen is None:
            continue
        fought = holding.fields & (seen.added | seen.modified)
        if fought:
            fights[each] = fought
        kept[each] = replace(holding, fields=holding.fields - fought - seen.removed)
    if fights and not force and not _was_kubectls_own(writer, live, fights, shape):
        raise conflicts(fights)
    if writer.manager == KUBECTL and _last_applied(live) is not None:
        doc = _with_last_applied(doc, config)
    difference = compare(plain, doc, shape)
    earlier = mine.get(owner)
    same = earlier is not None and earlier.fields == stated and not difference.added and not difference.modified
    kept[owner] = OwnedFields(stated, earlier.time if same and earlier is not None else writer.time)
    return OwnedDocument(doc, kept, owner)


def _split(
    holdings: Holdings, owner: FieldOwner
) -> tuple[dict[FieldOwner, OwnedFields], dict[FieldOwner, OwnedFields]]:
    """The earlier entries of an applier, in whichever version, and those of all others."""
    mine = {
        each: holding
        for each, holding in holdings.items()
        if each.operation == APPLY and (each.manager, each.subresource) == (owner.manager, owner.subresource)
    }
    return mine, {each: holding for each, holding in holdings.items() if each not in mine}


def _merged(writer: Ownership, plain: Doc, config: Doc, stated: Fields, mine: Holdings, others: Holdings) -> Doc:
    """The live object with the configuration in it, and without what its applier no longer states and nobody else
    owns."""
    shape = shape_of(writer.kind)
    doc: Doc = merged(plain, config, shape)
    names = VersionedStep(writer.kind, plain, doc, writer.find)

    def all_of(part: Holdings) -> Fields:
        return NONE.union(*(names.translated(one.fields, each.api_version) for each, one in part.items()))

    elsewhere = all_of(others)
    gone = all_of(mine) - stated - elsewhere
    result: Doc = without(doc, shape, gone, stated | elsewhere)
    if any(each.api_version != writer.kind.api_version for each in (*mine, *others)):
        # The original converts on the way, and a conversion gives defaults: what they bring back is not taken away.
        kind = writer.kind
        filled = shown_as(writer.fill(shown_as(result, kind, kind.storage)), kind.storage, kind)
        back = compare({"metadata": {}}, filled, shape).added
        result = without(doc, shape, gone - back, stated | elsewhere)
    return result


def _last_applied(live: Doc) -> Any:
    return (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)


def _was_kubectls_own(writer: Ownership, live: Doc, fights: Mapping[FieldOwner, Fields], shape: TypeShape) -> bool:
    """Whether kubectl only takes over what it applied itself before, from the client's side."""
    said = _last_applied(live)
    if writer.manager != KUBECTL or not isinstance(said, str):
        return False
    try:
        earlier = orjson.loads(said)
    except orjson.JSONDecodeError:
        return False
    own = fields_of(earlier, shape) if isinstance(earlier, dict) else NONE
    return all(fields <= own for fields in fights.values())


def _with_last_applied(doc: Doc, config: Doc) -> Doc:
    """Keeps the note of client-side apply true, so that a user may go back to it."""
    text = orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    annotations = {**(doc["metadata"].get("annotations") or {}), LAST_APPLIED: text}
    return {**doc, "metadata": {**doc["metadata"], "annotations": annotations}}


def _owned_through(writer: Ownership, fields: Fields) -> Fields:
    """The fields that a request can own: `/status` owns the status alone, every other request anything else."""
    if "status" not in writer.kind.subresources:
        return fields
    at_status = writer.subresource == "status"
    return frozenset(path for path in fields if (path[0] == "f:status") == at_status)


def _before_first_apply(writer: Ownership, live: Doc, shape: TypeShape) -> dict[FieldOwner, OwnedFields]:
    """Owners for an object without managedFields: kubectl of what it applied client-side, one entry for the rest."""
    difference = compare(empty_document(writer.kind), _plain(live), shape)
    fields = _owned_through(writer, difference.added | difference.modified) - SERVERS_OWN
    applied = fields & _applied_by_kubectl(live, shape)
    parts = ((CLIENT_SIDE, applied), (BEFORE_FIRST_APPLY, fields - applied))
    return {
        FieldOwner(name, UPDATE, writer.kind.api_version): OwnedFields(owned, writer.time)
        for name, owned in parts
        if owned
    }


def _applied_by_kubectl(live: Doc, shape: TypeShape) -> Fields:
    """The fields that `kubectl apply` last set, by the mark that it leaves, and the mark itself."""
    mark = ((live["metadata"].get("annotations")) or {}).get(LAST_APPLIED)
    try:
        configuration = orjson.loads(mark or b"{}")
    except orjson.JSONDecodeError:
        return frozenset()
    if not mark or not isinstance(configuration, dict):
        return frozenset()
    metadata = {**(configuration.get("metadata") or {})}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), LAST_APPLIED: mark}
    return compare({"metadata": {}}, {**configuration, "metadata": metadata}, shape).added


def conflicts(fights: Mapping[FieldOwner, Fields]) -> Conflict:
    """The error that names the owners of fields which the configuration would change."""
    causes, texts, count = [], [], 0
    for owner, fields in sorted(fights.items()):
        who = _named(owner)
        paths = [spoken(path) for path in sorted(fields)]
        count += len(paths)
        causes += [
            {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path} for path in paths
        ]
        if len(paths) == 1:
            texts.append(f"conflict with {who}: {paths[0]}")
        else:
            texts.append(f"conflicts with {who}:\n" + "\n".join(f"- {path}" for path in paths))
    word = "conflict" if count == 1 else "conflicts"
    return Conflict(f"Apply failed with {count} {word}: " + "\n".join(texts), details={"causes": causes})


def _named(owner: FieldOwner) -> str:
    named = f'"{owner.manager}"'
    if owner.subresource:
        named += f' with subresource "{owner.subresource}"'
    return named if owner.operation == APPLY else f"{named} using {owner.api_version}"
