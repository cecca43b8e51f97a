"""Admission: the way of an object from a request to what is stored.

    create:  strategy ─▶ defaults ─▶ built-in mutating admission ─▶ validation
    update:  strategy ─▶ defaults ─▶ validation of the object, then of the step from the old one

Documents arrive decoded (api/store/schema.py). Nothing here looks at a clock or writes anything; other objects
(priority classes, runtime classes) are read through the DocView. Pods that differ only in name are the common case, so
a pod spec that was defaulted and found good is remembered by its bytes and shared by all that say the same.

Invariant: what comes out is a new document; what went in is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson

from fairlead.api.admission import builtin, groups, strategy, volcano
from fairlead.api.admission.custom import default_custom
from fairlead.api.admission.custom_rules import check_custom
from fairlead.api.admission.label_keys import bake_label_keys
from fairlead.api.admission.limits import check_claim_limits, check_pod_limits, limited
from fairlead.api.admission.metadata import check_metadata, check_metadata_update
from fairlead.api.admission.plain_defaults import PLAIN_DEFAULTS
from fairlead.api.admission.plain_rules import PLAIN_RULES, PLAIN_STEPS, check_namespace_status
from fairlead.api.admission.pod_defaults import default_pod_spec
from fairlead.api.admission.pod_updates import check_pod_update
from fairlead.api.admission.pods import check_new_pod, check_pod_spec
from fairlead.api.admission.problems import ValidationProblems
from fairlead.api.admission.service_addresses import keep_addresses, with_addresses
from fairlead.api.admission.workload_defaults import WORKLOAD_DEFAULTS, mark_daemon_set, own_job
from fairlead.api.admission.workloads import WORKLOAD_RULES, WORKLOAD_STEPS, check_workload_status
from fairlead.api.custom.definitions import check_definition, check_definition_step, default_definition
from fairlead.api.custom.rules import check_defined
from fairlead.api.custom.structural import default_defined
from fairlead.api.store.conversion import convert
from fairlead.api.store.objects import compact
from fairlead.api.store.schema import is_custom, struct_of
from fairlead.model import kinds as k
from fairlead.model.quality import quality_of_service

if TYPE_CHECKING:
    from fairlead.model.flow import Doc, DocView
    from fairlead.model.kinds import Kind

_DEFAULTS = {
    **PLAIN_DEFAULTS, **WORKLOAD_DEFAULTS, k.CUSTOM_RESOURCE_DEFINITION: default_definition,
}  # fmt: skip
_RULES = {**PLAIN_RULES, **WORKLOAD_RULES, k.CUSTOM_RESOURCE_DEFINITION: check_definition}
_STEPS: dict[Kind, Callable[[ValidationProblems, Doc, Doc], None]] = {
    **PLAIN_STEPS,
    **WORKLOAD_STEPS,
    k.CUSTOM_RESOURCE_DEFINITION: check_definition_step,
    k.POD: lambda problems, new, old: check_pod_update(problems, new["spec"], old["spec"]),
}
_STATUS_COUNTS = frozenset({k.DEPLOYMENT, k.REPLICA_SET, k.REPLICATION_CONTROLLER})
_REMEMBERED = 2048
_GATED = {
    "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}  # fmt: skip


class Admission:
    """Defaults and rules for every kind; kinds without any pass as they are."""

    def __init__(self, view: DocView) -> None:
        self._view = view
        self._good_specs: dict[bytes, tuple[Doc, str]] = {}

    def create(self, spoken: Kind, doc: Doc) -> Doc:
        """The object as it will be stored; `doc` is in the stored version already, whichever was spoken. Raises
        Invalid or Forbidden."""
        kind = spoken.storage
        if kind is k.POD:
            return self._create_limited_pod(doc)
        prepared = default(kind, strategy.prepare_create(kind, doc))
        if kind is k.JOB:
            prepared = own_job(prepared)
        elif kind is k.DAEMON_SET:
            prepared = mark_daemon_set(prepared)
        elif kind is k.SERVICE:
            prepared = with_addresses(prepared, self._view)
        elif kind is k.PERSISTENT_VOLUME_CLAIM:
            prepared = builtin.with_default_class(self._view, prepared)
        elif kind is k.VC_QUEUE:
            prepared = volcano.mutate_queue(prepared)
        elif kind is k.VC_POD_GROUP:
            prepared = volcano.mutate_group(self._view, prepared)
        elif kind in groups.KINDS:
            prepared = groups.without_what_is_off(prepared)
            if kind is k.POD_GROUP_BETA:
                prepared = groups.with_priority(self._view, prepared)
        check(spoken, prepared)
        if kind is k.VC_QUEUE:
            volcano.admit_queue(self._view, prepared, None)
        elif spoken is k.POD_GROUP:
            groups.check_reference(self._view, prepared)
        if kind is k.PERSISTENT_VOLUME_CLAIM:
            check_claim_limits(self._view, prepared)
        return prepared

    def update(self, spoken: Kind, new: Doc, old: Doc, subresource: str = "") -> Doc:
        """The new state as it will be stored. Raises Invalid or Forbidden."""
        kind = spoken.storage
        match subresource:
            case "status":
                return self._update_status(kind, new, old)
            case "binding":
                return new
        prepared = strategy.prepare_update(kind, new, old)
        if kind is k.SERVICE:
            prepared = with_addresses(keep_addresses(prepared, old), self._view)
        prepared = default(kind, prepared)
        if kind is k.POD:
            prepared = self._default_updated_pod(prepared, old)
        elif kind is k.DAEMON_SET:
            prepared = mark_daemon_set(prepared, old)
        elif kind in groups.KINDS:
            prepared = groups.without_what_is_off(prepared)
        _check_update(spoken, prepared, old)
        if kind is k.VC_QUEUE:
            volcano.admit_queue(self._view, prepared, old)
        return prepared

    def delete(self, kind: Kind, name: str) -> None:
        """Whether an object may go. Raises what speaks against it."""
        if kind is k.VC_QUEUE:
            volcano.admit_queue_deletion(self._view, name)

    def _update_status(self, kind: Kind, new: Doc, old: Doc) -> Doc:
        prepared = strategy.prepare_status(kind, new, old)
        problems = ValidationProblems()
        check_metadata(problems, kind, prepared["metadata"])
        if kind in _STATUS_COUNTS:
            check_workload_status(problems, prepared)
        elif kind is k.NAMESPACE:
            check_namespace_status(problems, prepared)
        elif kind is k.POD_GROUP_BETA:
            groups.check_conditions(problems, (prepared.get("status") or {}).get("conditions") or ())
        elif kind is k.NODE or is_custom(kind):
            _check_object(problems, kind, prepared, old)
        problems.raise_if_any(kind, prepared["metadata"]["name"])
        return prepared

    # -- pods ---------------------------------------------------------------------------------------------------------

    def _create_limited_pod(self, doc: Doc) -> Doc:
        """A new pod as the limit ranges of its namespace want it; most namespaces have none."""
        if not any(self._view.list(k.LIMIT_RANGE, doc["metadata"].get("namespace") or "")):
            return self._create_pod(doc)
        created = self._create_pod(limited(self._view, {**doc, "spec": default_pod_spec(doc.get("spec") or {})}))
        check_pod_limits(self._view, created)
        return created

    def _create_pod(self, doc: Doc) -> Doc:
        metadata = {**doc["metadata"], "generation": 1}
        name = metadata["name"]
        spec, quality = self._admitted_spec(name, doc.get("spec") or {})
        if "topologySpreadConstraints" in spec or "affinity" in spec:
            spec = bake_label_keys(spec, metadata.get("labels", {}))
        problems = ValidationProblems()
        check_metadata(problems, k.POD, metadata)
        problems.raise_if_any(k.POD, name)
        volcano.admit_pod(doc)
        status: Doc = {"phase": "Pending", "qosClass": quality}
        if spec.get("schedulingGates"):
            status["conditions"] = [{**_GATED, "lastTransitionTime": metadata.get("creationTimestamp", "")}]
        return {**doc, "metadata": metadata, "spec": spec, "status": status}

    def _admitted_spec(self, name: str, given: Doc) -> tuple[Doc, str]:
        """The spec with defaults and admission applied, found good; and its quality of service."""
        key = compact(orjson.dumps(given))
        known = self._good_specs.get(key)
        if known is None:
            defaulted = default_pod_spec(given)
            spec = builtin.admit_pod(self._view, name, dict(defaulted))
            problems = ValidationProblems()
            check_new_pod(problems, spec)
            check_pod_spec(problems, "spec", spec)
            problems.raise_if_any(k.POD, name)
            if len(self._good_specs) >= _REMEMBERED:
                self._good_specs.clear()
            known = self._good_specs[key] = defaulted, quality_of_service(spec)
            return spec, known[1]
        # Priority and runtime classes may have changed since, so admission by them is never remembered.
        return builtin.admit_pod(self._view, name, dict(known[0])), known[1]

    def _default_updated_pod(self, prepared: Doc, old: Doc) -> Doc:
        spec = default_pod_spec(prepared.get("spec", {}))
        builtin.default_tolerations(spec)
        updated = {**prepared, "spec": spec}
        return strategy.counted(k.POD, updated, old)


def default(kind: Kind, doc: Doc) -> Doc:
    """The document with its kind's defaults."""
    defaulter = _DEFAULTS.get(kind)
    if defaulter is not None:
        return defaulter(doc)
    if kind.definition is not None:
        return default_defined(kind, doc)
    if is_custom(kind) and (struct := struct_of(kind)) is not None:
        return default_custom(struct, doc)
    return doc


def check(spoken: Kind, doc: Doc) -> None:
    """Refuse a document that breaks its kind's rules."""
    problems = ValidationProblems()
    _check_object(problems, spoken, doc)
    problems.raise_if_any(spoken.storage, doc["metadata"]["name"])


def _check_update(spoken: Kind, new: Doc, old: Doc) -> None:
    problems, step_problems, kind = ValidationProblems(), ValidationProblems(), spoken.storage
    _check_object(problems, spoken, new, old)
    check_metadata_update(problems, new["metadata"], old["metadata"])
    step = _STEPS.get(kind)
    if step is not None:
        step(step_problems, new, old)
    # A DaemonSet's original looks at the step first; the order shows in the message.
    first, second = (step_problems, problems) if kind is k.DAEMON_SET else (problems, step_problems)
    first.found += second.found
    first.raise_if_any(kind, new["metadata"]["name"])


def _check_object(problems: ValidationProblems, spoken: Kind, doc: Doc, old: Doc | None = None) -> None:
    kind = spoken.storage
    check_metadata(problems, kind, doc["metadata"])
    if kind is k.POD:
        check_pod_spec(problems, "spec", doc["spec"])
        return
    if kind in groups.KINDS:
        before = None if old is None else convert(old, kind, spoken)
        groups.check_group_spec(problems, spoken, convert(doc, kind, spoken), before)
        return
    rule = _RULES.get(kind)
    if rule is not None:
        rule(problems, doc)
    elif kind.definition is not None:
        check_defined(problems, kind, doc, old)
    elif is_custom(kind):
        check_custom(problems, kind, doc)
