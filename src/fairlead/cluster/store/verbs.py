"""What a write would make of the present state: the rules of create, update, patch and delete.

Verbs decides and changes nothing. It answers with an Outcome, which the Store commits (or, in a dry run, only
shows). Everything a server fills in or refuses by itself is here: names, uids, versions, preconditions, namespaces,
deletion; what depends on a kind's fields is in admission.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission import Admission
from fairlead.cluster.admission.quota import charged
from fairlead.cluster.custom.definitions import terminating_status, with_status
from fairlead.cluster.store import schema
from fairlead.cluster.store.conversion import convert
from fairlead.cluster.store.deletion import (
    RETURNS_THE_OBJECT,
    DeleteOptions,
    check_preconditions,
    last_state,
    may_go,
    terminating,
)
from fairlead.cluster.store.known_specs import KnownSpecs, decode_copy
from fairlead.cluster.store.objects import (
    Record,
    already_exists,
    generated_name,
    metadata_of,
    modified_meanwhile,
    name_required,
    new_uid,
    not_found,
    private_copy,
    qualified,
    status_details,
    success,
    unclassified,
    unsupported_option,
    version_required,
    wrong_uid,
)
from fairlead.cluster.store.owners import Configuration, Owners
from fairlead.cluster.store.patch import apply_patch, pod_status_set, status_part, with_status_set, with_the_rest
from fairlead.cluster.store.subresources import SCALE, bound, scale_of, scaled
from fairlead.core.model import kinds
from fairlead.core.model.flow import PatchType, Verb
from fairlead.core.model.records import record
from fairlead.core.model.times import timestamp
from fairlead.errors import BadRequest, Forbidden, Invalid, MethodNotAllowed, NotFound

if TYPE_CHECKING:
    from fairlead.cluster.admission.hooks import KindHooks
    from fairlead.cluster.store.binding_room import BindingRoom
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.flow import Doc, Write
    from fairlead.core.model.kinds import Kind

SERVED_SUBRESOURCES = frozenset({"status", "scale", "binding", "finalize", "eviction", "token"})
CREATED_BY_UPDATE = frozenset({kinds.EVENT, kinds.LEASE, kinds.ENDPOINTS, kinds.LIMIT_RANGE, kinds.SERVICE})
NEVER_UNCONDITIONAL = frozenset({
    kinds.POD_DISRUPTION_BUDGET, kinds.LEASE, kinds.ENDPOINT_SLICE, kinds.POD_GROUP_BETA, kinds.WORKLOAD_BETA,
})  # fmt: skip
"""Kinds (besides custom ones) that may be updated only by who names the version that is replaced."""
SERVERS_OWN = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName")
"""Metadata that an update cannot change: what is there stays."""
_DROPPED_ON_CREATE = frozenset({
    "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields", "generation",
})  # fmt: skip
GENERATE_ATTEMPTS = 8
_CREATE, _UPDATE, _PATCH, _DELETE = Verb
_APPLY = PatchType.APPLY
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""
_OPTIONS = {Verb.CREATE: "CreateOptions", Verb.UPDATE: "UpdateOptions", Verb.PATCH: "PatchOptions"}


@record(frozen=True, slots=True)
class VerbOutcome:
    """`before` becomes `after` (a document without a version yet, or None for gone); `reply` makes the answer of
    what was committed."""

    kind: Kind
    before: Record | None
    after: Doc | None
    """The new state, or None when the object goes."""
    reply: Callable[[Doc], Doc]
    last: Doc | None = None
    """For an object that goes: the state that watchers see last, a document that nobody else has."""
    dry_run: bool = False
    also: tuple[VerbOutcome, ...] = ()
    """What happens together with it, right after it: quotas that are charged for a new object."""


class Verbs:
    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float],
        rng: Random,
        hooks: Mapping[Kind, KindHooks] | None = None,
        room: BindingRoom | None = None,
    ) -> None:
        self._store, self._clock, self._rng, self._room = store, clock, rng, room
        self._admission = Admission(store, hooks)
        self._owners = Owners(clock, store.registry.by_kind)
        self._specs = KnownSpecs()

    def decide(self, write: Write, warnings: list[str] | None = None) -> VerbOutcome:
        """The outcome of any write. Unknown fields are named in `warnings`, if the caller wants them."""
        verb, subresource = write.verb, write.subresource
        if subresource and (subresource not in SERVED_SUBRESOURCES or subresource not in write.kind.subresources):
            raise not_found_path()
        if verb is _DELETE:
            return self._delete(write)
        if subresource == "binding":
            return self._bind(write)
        if subresource in ("eviction", "token"):
            raise _not_here()
        if verb is _PATCH and write.patch_type is _APPLY:
            return self._apply(write, warnings)
        if subresource == "scale":
            return self._scale(write)
        if verb is _CREATE:
            return self._create(write, warnings)
        return self._update(write, warnings) if verb is _UPDATE else self._patch(write, warnings)

    # -- create -------------------------------------------------------------------------------------------------------

    def _create(self, write: Write, warnings: list[str] | None) -> VerbOutcome:
        kind = write.kind.storage
        if write.subresource:
            raise _not_here()
        doc = self._decoded(write, write.body, warnings)
        metadata = metadata_of(doc)
        if metadata.get("resourceVersion"):
            raise unclassified("resourceVersion should not be set on objects to be created")
        self._place(write, metadata)
        self._check_namespace(kind, metadata)
        return self._created(write, doc, metadata)

    def _created(
        self, write: Write, doc: Doc, metadata: dict[str, Any], configuration: Configuration | None = None
    ) -> VerbOutcome:
        """Names and stamps a new object, admits it, and finds its name free."""
        kind = write.kind.storage
        if not _DROPPED_ON_CREATE.isdisjoint(metadata):
            for field in _DROPPED_ON_CREATE:
                metadata.pop(field, None)
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                raise name_required(kind)
            metadata["name"] = self._free_name(kind, metadata)
        metadata["uid"] = new_uid(self._rng)
        metadata["creationTimestamp"] = timestamp(self._clock())
        sent, doc = doc, self._with_status(kind, self._admission.create(write.kind, doc))
        doc = self._owners.of_new(write, doc, sent, configuration)
        key = metadata.get("namespace") or "", doc["metadata"]["name"]
        if (there := self._store.find(kind, *key)) is not None:
            raise already_exists(kind, key[1], going="deletionTimestamp" in there.doc["metadata"])
        also = self._charged(kind, doc)
        return VerbOutcome(kind, None, doc, self._shown_as(write.kind), dry_run=_dry_run(write), also=also)

    def _charged(self, kind: Kind, doc: Doc, old: Doc | None = None) -> tuple[VerbOutcome, ...]:
        """The quotas of the object's namespace, with what it uses added."""
        quotas = charged(self._store, kind, doc, old)
        if not quotas:
            return ()
        outcomes = []
        for quota in quotas:
            where = quota["metadata"]["namespace"], quota["metadata"]["name"]
            before = self._store.existing(kinds.RESOURCE_QUOTA, *where)
            outcomes.append(VerbOutcome(kinds.RESOURCE_QUOTA, before, quota, _itself))
        return tuple(outcomes)

    def _place(self, write: Write, metadata: dict[str, Any]) -> None:
        """Settle namespace and name between the URL and the object."""
        if not write.kind.namespaced:
            metadata.pop("namespace", None)
        else:
            given = metadata.get("namespace") or write.namespace
            if not isinstance(given, str) or (write.namespace and given != write.namespace):
                raise BadRequest(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            if not given:
                raise BadRequest("an empty namespace may not be set during creation")
            metadata["namespace"] = given
        if write.verb is not _CREATE and not metadata.get("name"):
            raise BadRequest(
                f"the name of the object ({write.name} based on URL) was undeterminable: name must be provided"
            )
        if write.name:
            given = metadata.setdefault("name", write.name) or write.name
            if given != write.name:
                raise BadRequest(f"the name of the object ({given}) does not match the name on the URL ({write.name})")
            metadata["name"] = given

    def _check_namespace(self, kind: Kind, metadata: Mapping[str, Any]) -> None:
        namespace = metadata.get("namespace")
        if not namespace:
            return
        found = self._store.get(kinds.NAMESPACE, "", namespace)
        if found is None:
            raise not_found(kinds.NAMESPACE, namespace)
        if "deletionTimestamp" in found["metadata"]:
            name = metadata.get("name") or metadata.get("generateName") or ""
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise Forbidden(
                f'{kind.resource} "{name}" is forbidden: unable to create new content in namespace {namespace}'
                " because it is being terminated",
                details=status_details(kind, name) | {"causes": [cause]},
            )

    def _free_name(self, kind: Kind, metadata: Mapping[str, Any]) -> str:
        for _ in range(GENERATE_ATTEMPTS):
            name = generated_name(str(metadata["generateName"]), self._rng)
            if self._store.find(kind, metadata.get("namespace") or "", name) is None:
                return name
        return name

    # -- update and patch ---------------------------------------------------------------------------------------------

    def _update(self, write: Write, warnings: list[str] | None) -> VerbOutcome:
        kind = write.kind.storage
        doc = self._decoded(write, write.body, warnings)
        metadata = metadata_of(doc)
        self._place(write, metadata)
        before = self._store.find(kind, write.namespace if kind.namespaced else "", write.name)
        if before is None:
            if kind in CREATED_BY_UPDATE and not write.subresource and not metadata.get("uid"):
                metadata.pop("resourceVersion", None)
                self._check_namespace(kind, metadata)
                return self._created(write, doc, metadata)
            raise not_found(kind, write.name)
        if not metadata.get("resourceVersion") and (write.kind in NEVER_UNCONDITIONAL or schema.is_custom(kind)):
            raise version_required(kind, write.name)
        return self._replaced(write, before, doc)

    def _patch(self, write: Write, warnings: list[str] | None) -> VerbOutcome:
        before = self._store.existing(write.kind, write.namespace, write.name)
        shown = self._store.shown(write.kind, before)
        if write.conforms and (after := pod_status_set(write, shown)) is not None:
            return VerbOutcome(kinds.POD, before, after, _itself, dry_run=_dry_run(write))
        doc = with_status_set(write, shown) if warnings is None else None
        if doc is None:
            patched = apply_patch(write.kind, shown, write.body, write.patch_type)
            part = status_part(write, patched)
            doc = self._decoded(write, patched if part is None else part, warnings)
            doc = doc if part is None else with_the_rest(doc, patched)
        self._place(write, metadata_of(doc))
        return self._replaced(write, before, doc)

    def _apply(self, write: Write, warnings: list[str] | None) -> VerbOutcome:
        """Server-side apply: the writer states what it wants of an object, which need not exist yet."""
        kind = write.kind
        before = self._store.find(kind.storage, write.namespace if kind.namespaced else "", write.name)
        live = None if before is None else self._store.shown(kind, before)
        configuration = self._owners.configuration(write, live)
        doc = self._decoded(write, configuration.doc, warnings)
        metadata = metadata_of(doc)
        self._place(write, metadata)
        if before is not None:
            return self._replaced(write, before, doc, configuration)
        if write.subresource:
            raise not_found(kind, write.name)
        metadata.pop("resourceVersion", None)
        self._check_namespace(kind.storage, metadata)
        return self._created(write, doc, metadata, configuration)

    def _with_status(self, kind: Kind, doc: Doc) -> Doc:
        """A definition takes effect with the write; all others wait for their controllers."""
        if kind is not kinds.CUSTOM_RESOURCE_DEFINITION:
            return doc
        return with_status(doc, self._store, timestamp(self._clock()))

    def _replaced(
        self, write: Write, before: Record, doc: Doc, configuration: Configuration | None = None
    ) -> VerbOutcome:
        """`doc` in the place of `before`, as far as the kind's rules let it."""
        kind = write.kind.storage
        old = self._store.shown(kind, before)
        given = metadata_of(doc).pop("managedFields", None)
        _carry_over(kind, doc, old)
        if write.subresource == "finalize":
            after = {
                **old,
                "spec": _with_finalizers(old.get("spec") or {}, (doc.get("spec") or {}).get("finalizers")),
            }
        else:
            after = self._with_status(kind, self._admission.update(write.kind, doc, old, write.subresource))
            _check_finalizers(kind, after, old)
        after = self._owners.of_changed(write, after, old, configuration, given)
        return VerbOutcome(
            kind,
            before,
            None if may_go(kind, after) else after,
            self._shown_as(write.kind),
            dry_run=_dry_run(write),
            also=() if write.subresource else self._charged(kind, after, old),
        )

    # -- subresources -------------------------------------------------------------------------------------------------

    def _bind(self, write: Write) -> VerbOutcome:
        if write.verb is not _CREATE or write.kind is not kinds.POD:
            raise _not_here()
        body = write.body if write.conforms else private_copy(write.body)
        if metadata_of(body).get("name") != write.name:
            raise BadRequest("name in URL does not match name in Binding object")
        before = self._store.existing(kinds.POD, write.namespace, write.name)
        old = self._store.shown(kinds.POD, before)
        pod = bound(old, body, now=self._clock(), view=self._store)
        if self._room is not None:
            self._room.check(old, node := pod["spec"]["nodeName"], self._store.get(kinds.NODE, "", node))
        pod = self._owners.of_changed(write, pod, old, None, None)
        return VerbOutcome(kinds.POD, before, pod, _created_status, dry_run=_dry_run(write))

    def _scale(self, write: Write) -> VerbOutcome:
        kind = write.kind
        before = self._store.existing(kind, write.namespace, write.name)
        old = self._store.shown(kind, before)
        if write.verb is Verb.UPDATE:
            scale = schema.decode(SCALE, private_copy(write.body)).doc
        elif write.verb is Verb.PATCH:
            scale = apply_patch(SCALE, scale_of(kind, old), write.body, write.patch_type)
        else:
            raise _not_here()
        metadata_of(scale)
        doc = scaled(kind, old, scale)
        _carry_over(kind, doc, old)
        stored = self._store.shown(kind.storage, before)
        doc = private_copy(convert(doc, kind, kind.storage))
        metadata_of(doc).pop("managedFields", None)
        after = self._admission.update(kind, doc, stored, "")
        after = self._owners.of_changed(write, after, stored, None, None)
        show = self._shown_as(kind)
        return VerbOutcome(
            kind.storage, before, after, lambda stored: scale_of(kind, show(stored)), dry_run=_dry_run(write)
        )

    # -- delete -------------------------------------------------------------------------------------------------------

    def _delete(self, write: Write) -> VerbOutcome:
        if write.subresource:
            raise _not_here()
        kind = write.kind.storage
        options, now = DeleteOptions.read(write.body, write.params), self._clock()
        before = self._store.existing(write.kind, write.namespace, write.name)
        doc = self._store.shown(kind, before)
        check_preconditions(kind, doc, options)
        self._admission.delete(kind, write.name)
        after = terminating(kind, doc, options, now)
        if kind is kinds.CUSTOM_RESOURCE_DEFINITION and "deletionTimestamp" not in doc["metadata"]:
            after = self._being_deleted(doc, options)
        last = last_state(kind, doc, now) if after is None else None
        if after is not None or kind in RETURNS_THE_OBJECT:
            reply = self._shown_as(write.kind)
        else:
            uid = doc["metadata"]["uid"]
            reply = lambda _: success(write.kind, write.name, uid)  # noqa: E731
        return VerbOutcome(kind, before, after, reply, last=last, dry_run=options.dry_run)

    def _being_deleted(self, doc: Doc, options: DeleteOptions) -> Doc:
        """A definition goes when its objects are gone; the Store sees to that."""
        kind, now = kinds.CUSTOM_RESOURCE_DEFINITION, self._clock()
        marked = terminating_status(doc, timestamp(now))
        return terminating(kind, marked, options, now) or marked

    # -- documents ----------------------------------------------------------------------------------------------------

    def _decoded(self, write: Write, body: Any, warnings: list[str] | None) -> Doc:
        """The writer's document in the kind's stored version: types checked, unknown fields dropped, our own copy."""
        kind = write.kind
        if write.conforms and warnings is None and kind.definition is None:
            return convert(schema.completed(kind, body), kind, kind.storage)
        check = partial(_check_type, kind)
        doc, unknown = self._specs.decode(body, check) if kind is kinds.POD else decode_copy(kind, body, check)
        if unknown:
            validation = write.params.get("fieldValidation") or "Warn"
            if validation == "Strict":
                raise schema.strict_error(kind, unknown)
            if validation == "Warn" and warnings is not None:
                warnings += [f'unknown field "{path}"' for path in unknown]
        if warnings is not None:
            warnings += self._admission.warnings(kind, doc)
        if kind.stored_as is None:
            return doc
        stored = convert(doc, kind, kind.storage)
        if kind.group == kind.storage.group and kind.definition is None:
            return stored  # a value that only the spoken version knows is for its rules to refuse
        return schema.decode(kind.storage, stored).doc

    def _shown_as(self, kind: Kind) -> Callable[[Doc], Doc]:
        if kind.stored_as is None:
            return _itself
        return lambda doc: convert(doc, kind.storage, kind)


def _itself(doc: Doc) -> Doc:
    return doc


def _created_status(_: Doc) -> Doc:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _not_here() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource")


def not_found_path() -> NotFound:
    """A path that leads nowhere. The details are what client-go makes of a real server's answer; kubectl reads them."""
    cause = {"reason": "UnexpectedServerResponse", "message": "404 page not found"}
    return NotFound("the server could not find the requested resource", details={"causes": [cause]})


def _dry_run(write: Write) -> bool:
    if not write.params:
        return False
    value = write.params.get("dryRun")
    if value not in (None, "", "All"):
        raise unsupported_option(_OPTIONS[write.verb], "dryRun", f'["{value}"]', '"All"')
    return bool(value)


def _check_type(kind: Kind, doc: Doc) -> None:
    """The document must be of the kind that the request is about; what it leaves out is filled in."""
    given = doc.setdefault("apiVersion", kind.api_version), doc.setdefault("kind", kind.kind)
    if given == (kind.api_version, kind.kind):
        metadata_of(doc)
        return
    if given[0] != kind.api_version:
        raise BadRequest(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: no kind "{given[1]}" is'
            f' registered for version "{given[0]}" in scheme "pkg/runtime/scheme.go:111"'
        )
    raise BadRequest(
        f'{given[1]} in version "{kind.version}" cannot be handled as a {kind.kind}: converting'
        f" ({kind.version}.{given[1]}) to ({kind.group.partition('.')[0] or 'core'}.{kind.kind}): unknown conversion"
    )


def _carry_over(kind: Kind, doc: Doc, old: Doc) -> None:
    """Check version and uid against what is there, and keep the metadata that is the server's own."""
    new, current = metadata_of(doc), old["metadata"]
    name = current["name"]
    if (version := new.get("resourceVersion")) and version != current["resourceVersion"]:
        if not (isinstance(version, str) and version.isascii() and version.isdigit()):
            raise unclassified(f'strconv.ParseUint: parsing "{version}": invalid syntax')
        raise modified_meanwhile(kind, name)
    if (uid := new.get("uid")) and uid != current["uid"]:
        raise wrong_uid(kind, current.get("namespace") or "", name, wanted=uid, actual=current["uid"])
    new["resourceVersion"] = current["resourceVersion"]
    for field in SERVERS_OWN:
        if field in current:
            new[field] = current[field]
        else:
            new.pop(field, None)


def _with_finalizers(spec: Doc, finalizers: Any) -> Doc:
    """The specification of a namespace with these finalizers; none is no field, not an empty one."""
    rest = {name: value for name, value in spec.items() if name != "finalizers"}
    return {**rest, "finalizers": finalizers} if finalizers else rest


def _check_finalizers(kind: Kind, new: Doc, old: Doc) -> None:
    """Refuse new finalizers of an object that is being deleted."""
    if "deletionTimestamp" not in old["metadata"]:
        return
    present = old["metadata"].get("finalizers") or []
    added = [name for name in new["metadata"].get("finalizers") or [] if name not in present]
    if added:
        listed = ", ".join(f'"{name}"' for name in added)
        text = (
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
        )
        name = new["metadata"]["name"]
        cause = {"reason": "FieldValueForbidden", "message": f"Forbidden: {text}", "field": "metadata.finalizers"}
        raise Invalid(
            f'{qualified(kind)} "{name}" is invalid: metadata.finalizers: Forbidden: {text}',
            details={
                "name": name,
                "kind": kind.kind,
                **({"group": kind.group} if kind.group else {}),
                "causes": [cause],
            },
        )
