"""What a DELETE does to an object: at once, gracefully, or when its finalizers are done.

    delete ──▶ finalizers left, or a pod with grace ──▶ terminating (deletionTimestamp set) ──▶ gone
           └─▶ neither ───────────────────────────────────────────────────────────────────────▶ gone

Only pods are deleted gracefully: a pod on a node stays until its kubelet says (by deleting with a grace of 0) that
it has ended. Everything here is a pure function of document, options and time; the Store does what it answers.
"""

from __future__ import annotations

from calendar import timegm
from time import strptime
from typing import TYPE_CHECKING, Any

from fairlead.cluster.store.objects import conflict, status_details, unsupported_option
from fairlead.cluster.store.schema import decode_as
from fairlead.core.model import kinds
from fairlead.core.model.kinds import Kind
from fairlead.core.model.records import record
from fairlead.core.model.times import timestamp
from fairlead.errors import BadRequest, Conflict, Forbidden, Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.core.model.flow import Doc

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
POLICIES = ("Foreground", "Background", "Orphan")
ORPHANS_BY_DEFAULT = frozenset({kinds.JOB, kinds.REPLICATION_CONTROLLER})
RETURNS_THE_OBJECT = frozenset(
    {
        kinds.POD, kinds.SERVICE, kinds.SERVICE_ACCOUNT, kinds.PERSISTENT_VOLUME, kinds.PERSISTENT_VOLUME_CLAIM,
        kinds.POD_TEMPLATE, kinds.RESOURCE_QUOTA, kinds.VOLUME_ATTACHMENT, kinds.CSI_NODE, kinds.STORAGE_CLASS,
        kinds.CSI_DRIVER, kinds.RESOURCE_CLAIM, kinds.RESOURCE_CLAIM_TEMPLATE, kinds.RESOURCE_SLICE,
        kinds.DEVICE_CLASS,
    }
)  # fmt: skip
"""Kinds whose deleted object is the answer; for all others it is a Status."""
_OPTIONS, _TYPE = Kind("", "v1", "DeleteOptions", ""), "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
PERMANENT_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
DEFAULT_GRACE = 30
_GRACE_ALONE = {"gracePeriodSeconds"}


@record(frozen=True, slots=True)
class DeleteOptions:
    grace: int | None = None
    policy: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

    @classmethod
    def read(cls, body: Any, params: Mapping[str, str]) -> DeleteOptions:
        """From the request's body or, where that says nothing, its query."""
        if not params and isinstance(body, dict) and body.keys() == _GRACE_ALONE:
            grace = body["gracePeriodSeconds"]
            if type(grace) is int:  # the common case by far: kubelets and cleaners
                return _AT_ONCE if grace == 0 else cls(grace=grace)
        if body is not None and not isinstance(body, dict):
            raise BadRequest("the object provided is unrecognized (must be of type object)")
        body = decode_as(_TYPE, _OPTIONS, body) if body else {}
        preconditions = body.get("preconditions") or {}
        grace = body.get("gracePeriodSeconds", params.get("gracePeriodSeconds"))
        dry_run = body.get("dryRun") or [value for value in (params.get("dryRun"),) if value]
        return cls(
            grace=None if grace is None else _whole(grace),
            policy=_policy(body, params),
            uid=str(preconditions.get("uid") or ""),
            resource_version=str(preconditions.get("resourceVersion") or ""),
            dry_run=_dry_run(dry_run),
        )


_AT_ONCE = DeleteOptions(grace=0)


def _whole(value: Any) -> int:
    try:
        if isinstance(value, bool):
            raise ValueError
        return int(value)
    except (TypeError, ValueError):
        raise BadRequest(
            f"v1.DeleteOptions.GracePeriodSeconds: readUint64: unexpected character: {value!r} is not a number"
        ) from None


def _dry_run(value: Any) -> bool:
    if value not in ([], ["All"]):
        given = ", ".join(f'"{each}"' for each in value) if isinstance(value, list) else value
        raise unsupported_option("DeleteOptions", "dryRun", f"[{given}]", '"All"')
    return bool(value)


def _policy(body: Mapping[str, Any], params: Mapping[str, str]) -> str:
    policy = body.get("propagationPolicy") or params.get("propagationPolicy") or ""
    orphan = body.get("orphanDependents")
    if policy and orphan is not None:
        raise Invalid(
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: '
            f'"{policy}": orphanDependents and deletionPropagation cannot be both set'
        )
    if policy and policy not in POLICIES:
        supported = '"Foreground", "Background", "Orphan", "nil"'
        raise unsupported_option("DeleteOptions", "propagationPolicy", f'"{policy}"', supported)
    return policy or ("" if orphan is None else "Orphan" if orphan else "Background")


def check_preconditions(kind: Kind, doc: Doc, options: DeleteOptions) -> None:
    if not options.uid and not options.resource_version:
        return
    metadata = doc["metadata"]
    for label, wanted, actual, suspicion in (
        ("UID", options.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, metadata["resourceVersion"], "modified"),
    ):
        if wanted and wanted != actual:
            name = metadata["name"]
            which = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
            raise Conflict(
                f'Operation cannot be fulfilled on {which} "{name}": the {label} in the precondition ({wanted})'
                f" does not match the {label} in record ({actual}). The object might have been {suspicion}",
                details=status_details(kind, name) | {"kind": kind.kind},
            )


def terminating(kind: Kind, doc: Doc, options: DeleteOptions, now: float) -> Doc | None:
    """The document that waits for its end; the same document if it already waits; None if it may go at once."""
    if kind is kinds.NAMESPACE:
        return _terminating_namespace(doc, now)
    metadata = doc["metadata"]
    finalizers = _finalizers(kind, metadata, options)
    grace = _grace(kind, doc, options)
    if "deletionTimestamp" in metadata:
        grace = _shortened(metadata, options, grace)
    if not grace and not finalizers:
        return None
    return _marked(doc, finalizers, grace, now)


def last_state(kind: Kind, doc: Doc, now: float) -> Doc:
    """The last state of an object that goes, as a document of its own: pods carry the marks of their deletion."""
    if kind is not kinds.POD:
        return {**doc, "metadata": dict(doc["metadata"])}
    return _marked(doc, [], 0, now)


def may_go(kind: Kind, doc: Doc) -> bool:
    """Whether a terminating object waits for nothing any more."""
    metadata = doc["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if kind is kinds.NAMESPACE:
        return not (doc.get("spec") or {}).get("finalizers")
    return not metadata.get("deletionGracePeriodSeconds")


def _grace(kind: Kind, doc: Doc, options: DeleteOptions) -> int:
    if kind is not kinds.POD:
        return 0
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    grace = options.grace
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        grace = DEFAULT_GRACE
    return 1 if grace < 0 else grace


def _shortened(metadata: Mapping[str, Any], options: DeleteOptions, grace: int) -> int:
    """A second delete may only make the wait shorter, and only if it says so."""
    left: int = metadata.get("deletionGracePeriodSeconds") or 0
    return left if options.grace is None and grace else min(left, grace)


def _finalizers(kind: Kind, metadata: Mapping[str, Any], options: DeleteOptions) -> list[str]:
    """The finalizers that the propagation policy leaves on the object."""
    present: list[str] = list(metadata.get("finalizers") or [])
    policy = options.policy
    if not policy and not present and kind is kinds.POD:
        return present
    if not policy:
        policy = next((name for name, mark in (("Orphan", ORPHAN), ("Foreground", FOREGROUND)) if mark in present), "")
    if not policy and kind in ORPHANS_BY_DEFAULT:
        policy = "Orphan"
    wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(policy)
    kept = [name for name in present if name not in (ORPHAN, FOREGROUND) or name == wanted]
    return kept if wanted is None or wanted in kept else [*kept, wanted]


def _marked(doc: Doc, finalizers: list[str], grace: int, now: float) -> Doc:
    old = doc["metadata"]
    metadata = dict(old)
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
    if "deletionTimestamp" not in old:
        metadata["deletionTimestamp"] = timestamp(now + grace)
        if old.get("generation"):
            metadata["generation"] = old["generation"] + 1
    elif grace != old.get("deletionGracePeriodSeconds"):
        begun = timegm(strptime(old["deletionTimestamp"], "%Y-%m-%dT%H:%M:%SZ"))
        begun -= old.get("deletionGracePeriodSeconds") or 0
        metadata["deletionTimestamp"] = timestamp(begun + grace)
    metadata["deletionGracePeriodSeconds"] = grace
    return {**doc, "metadata": metadata}


def _terminating_namespace(doc: Doc, now: float) -> Doc | None:
    metadata = doc["metadata"]
    name = metadata["name"]
    if name in PERMANENT_NAMESPACES:
        raise Forbidden(
            f'namespaces "{name}" is forbidden: this namespace may not be deleted',
            details={"name": name, "kind": "namespaces"},
        )
    if not (doc.get("spec") or {}).get("finalizers") and not metadata.get("finalizers"):
        return None
    if "deletionTimestamp" in metadata:
        raise conflict(
            kinds.NAMESPACE,
            name,
            "The system is ensuring all content is removed from this namespace.  Upon completion, this namespace"
            " will automatically be purged by the system.",
        )
    status = {**(doc.get("status") or {}), "phase": "Terminating"}
    return {**doc, "metadata": {**metadata, "deletionTimestamp": timestamp(now)}, "status": status}
