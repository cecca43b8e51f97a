"""PodAdmission: the way of a new pod from a request to what is stored.

Pods that differ only in name are the common case, so a spec that was given its defaults and found good is remembered by
its bytes when it comes for the second time, and all pods with the same bytes share the result from then on. What
admission reads from other objects (priority classes, runtime classes, limit ranges) is never remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson

from fairlead.cluster.admission import builtin
from fairlead.cluster.admission.label_keys import bake_label_keys
from fairlead.cluster.admission.limits import check_pod_limits, limited
from fairlead.cluster.admission.metadata import check_metadata
from fairlead.cluster.admission.pod_defaults import default_pod_spec
from fairlead.cluster.admission.pods import check_new_pod, check_pod_spec
from fairlead.cluster.admission.problems import ValidationProblems
from fairlead.cluster.store.known_specs import Recurring
from fairlead.cluster.store.objects import compact
from fairlead.core.model import kinds as k
from fairlead.core.model.quality import quality_of_service

if TYPE_CHECKING:
    from fairlead.cluster.admission.hooks import KindHooks
    from fairlead.core.model.flow import Doc, DocView

_REMEMBERED = 2048
_GATED = {
    "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}  # fmt: skip


class _AdmittedSpec(NamedTuple):
    """A spec that was given, the same with defaults, its quality of service, and what became of it with the priority
    that its class then had. `by_runtime_class` says that it also depends on a RuntimeClass."""

    given: Doc
    defaulted: Doc
    quality: str
    priority: tuple[int, str, str]
    by_runtime_class: bool
    admitted: Doc


class PodAdmission:
    def __init__(self, view: DocView, hooks: KindHooks) -> None:
        """Of `hooks`, `rewrite` comes before everything else and `admit` after the pod's own rules."""
        self._view = view
        self._rewrite, self._admit = hooks.rewrite, hooks.admit
        self._good_specs: dict[bytes, tuple[Doc, str]] = {}
        self._recurring = Recurring()
        self._same_specs: dict[int, _AdmittedSpec] = {}
        """The same by the identity of the spec that was given, which the Store decodes once for equal pods."""

    def create(self, doc: Doc) -> Doc:
        """A new pod as families and the limit ranges of its namespace want it; most namespaces have none."""
        if self._rewrite is not None:
            doc = self._rewrite(self._view, doc)
        if not any(self._view.list(k.LIMIT_RANGE, doc["metadata"].get("namespace") or "")):
            return self._create(doc)
        created = self._create(limited(self._view, {**doc, "spec": default_pod_spec(doc.get("spec") or {})}))
        check_pod_limits(self._view, created)
        return created

    def _create(self, doc: Doc) -> Doc:
        metadata = {**doc["metadata"], "generation": 1}
        name = metadata["name"]
        spec, quality = self._admitted_spec(name, doc.get("spec") or {})
        if "topologySpreadConstraints" in spec or "affinity" in spec:
            spec = bake_label_keys(spec, metadata.get("labels", {}))
        problems = ValidationProblems()
        check_metadata(problems, k.POD, metadata)
        problems.raise_if_any(k.POD, name)
        status: Doc = {"phase": "Pending", "qosClass": quality}
        if spec.get("schedulingGates"):
            status["conditions"] = [{**_GATED, "lastTransitionTime": metadata.get("creationTimestamp", "")}]
        created = {**doc, "metadata": metadata, "spec": spec, "status": status}
        if self._admit is not None:
            self._admit(self._view, k.POD, created, None)
        return created

    def _admitted_spec(self, name: str, given: Doc) -> tuple[Doc, str]:
        """The spec with defaults and admission applied, found good; and its quality of service."""
        same = self._same_specs.get(id(given))
        if same is not None and same.given is given:
            priority = builtin.priority_in(self._view, name, same.defaulted)
            if same.priority == priority and not same.by_runtime_class:
                return same.admitted, same.quality
            spec = builtin.admit_pod(self._view, name, dict(same.defaulted))
            self._same_specs[id(given)] = same._replace(priority=priority, admitted=spec)
            return spec, same.quality
        key = orjson.dumps(given)
        known = self._good_specs.get(key)
        if known is None:
            defaulted = default_pod_spec(given)
            spec = builtin.admit_pod(self._view, name, dict(defaulted))
            problems = ValidationProblems()
            check_new_pod(problems, spec)
            check_pod_spec(problems, "spec", spec)
            problems.raise_if_any(k.POD, name)
            known = defaulted, quality_of_service(spec)
            if self._recurring.came_before(key):
                if len(self._good_specs) >= _REMEMBERED:
                    self._good_specs.clear()
                    self._same_specs.clear()
                self._good_specs[compact(key)] = known
            return spec, known[1]
        # Priority and runtime classes may have changed since, so these are looked up each time.
        spec = builtin.admit_pod(self._view, name, dict(known[0]))
        if len(self._same_specs) < _REMEMBERED:
            priority = builtin.priority_in(self._view, name, known[0])
            by_class = "runtimeClassName" in spec or "overhead" in spec
            self._same_specs[id(given)] = _AdmittedSpec(given, *known, priority, by_class, spec)
        return spec, known[1]


def default_updated_pod(doc: Doc) -> Doc:
    """A changed pod with its defaults; tolerations that admission added to the new pod are part of them."""
    spec = default_pod_spec(doc.get("spec", {}))
    builtin.default_tolerations(spec)
    return {**doc, "spec": spec}
