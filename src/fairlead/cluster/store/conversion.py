"""One object in two versions: Events, the scheduling group, and autoscalers (autoscaler_versions.py).

Both versions of an Event keep the fields of the other under a `deprecated` name, so converting back and forth loses
nothing. PodGroups and Workloads are kept as Kubernetes 1.37 has them (v1beta1), which can say all that 1.36 (v1alpha2)
can:

    v1alpha2                                               v1beta1
    disruptionMode: Pod (the default), PodGroup            disruptionMode: {single: {}} (also if absent), {all: {}}
    podGroupTemplateRef: {workload: {workloadName,         workloadRef: {workloadName,
                          podGroupTemplateName}}                         templateName}
    condition PodGroupScheduled                            condition PodGroupInitiallyScheduled

A value that is neither passes as it is, so that the rules of the version that it was written in can refuse it. Kinds
that users define change nothing but apiVersion, except that each version shows no more than its own schema knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fairlead.cluster.custom.structural import conformed
from fairlead.cluster.store import autoscaler_versions
from fairlead.core.model import kinds
from fairlead.core.model.group import SCHEDULED_CONDITIONS

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_MODES = {"Pod": "single", "PodGroup": "all"}
_ALPHA_CONDITION, _BETA_CONDITION = SCHEDULED_CONDITIONS["v1alpha2"], SCHEDULED_CONDITIONS["v1beta1"]


def convert(doc: Doc, source: Kind, target: Kind) -> Doc:
    """The document of `source` as `target` shows it; the same object when the two are one kind."""
    if source is target:
        return doc
    if target.definition is not None:
        return conformed(target, doc)
    return {**_CONVERSIONS[source, target](doc), "apiVersion": target.api_version}


def _renamed(names: Mapping[str, str]) -> Callable[[Doc], Doc]:
    return lambda doc: {names.get(key, key): value for key, value in doc.items()}


# -- scheduling.k8s.io ------------------------------------------------------------------------------------------------


def _group_to_beta(doc: Doc) -> Doc:
    spec = doc.get("spec")
    if isinstance(spec, dict):
        doc = {**doc, "spec": _mode_to_beta(_reference_to_beta(spec))}
    return _with_condition(doc, _ALPHA_CONDITION, _BETA_CONDITION)


def _group_to_alpha(doc: Doc) -> Doc:
    spec = doc.get("spec")
    if isinstance(spec, dict):
        doc = {**doc, "spec": {"disruptionMode": "Pod", **_mode_to_alpha(_reference_to_alpha(spec))}}
    return _with_condition(doc, _BETA_CONDITION, _ALPHA_CONDITION)


def _workload_to_beta(doc: Doc) -> Doc:
    return _with_templates(doc, _mode_to_beta)


def _workload_to_alpha(doc: Doc) -> Doc:
    return _with_templates(doc, _mode_to_alpha)


def _with_templates(doc: Doc, change: Callable[[Doc], Doc]) -> Doc:
    spec = doc.get("spec")
    if not isinstance(spec, dict) or not spec.get("podGroupTemplates"):
        return doc
    return {**doc, "spec": {**spec, "podGroupTemplates": [change(one) for one in spec["podGroupTemplates"]]}}


def _mode_to_beta(spec: Doc) -> Doc:
    mode = spec.get("disruptionMode")
    return {**spec, "disruptionMode": {_MODES[mode]: {}}} if mode in _MODES else spec


def _mode_to_alpha(spec: Doc) -> Doc:
    mode = spec.get("disruptionMode")
    if not isinstance(mode, dict):
        return spec
    return {**spec, "disruptionMode": "PodGroup" if "all" in mode else "Pod"}


def _reference_to_beta(spec: Doc) -> Doc:
    workload = (spec.get("podGroupTemplateRef") or {}).get("workload")
    if workload is None:
        return spec
    rest = {key: value for key, value in spec.items() if key != "podGroupTemplateRef"}
    return {**rest, "workloadRef": _renamed({"podGroupTemplateName": "templateName"})(workload)}


def _reference_to_alpha(spec: Doc) -> Doc:
    workload = spec.get("workloadRef")
    if workload is None:
        return spec
    rest = {key: value for key, value in spec.items() if key != "workloadRef"}
    return {**rest, "podGroupTemplateRef": {"workload": _renamed({"templateName": "podGroupTemplateName"})(workload)}}


def _with_condition(doc: Doc, old: str, new: str) -> Doc:
    status = doc.get("status")
    if not isinstance(status, dict) or not status.get("conditions"):
        return doc
    conditions: list[Any] = [{**one, "type": new} if one.get("type") == old else one for one in status["conditions"]]
    return {**doc, "status": {**status, "conditions": conditions}}


_CONVERSIONS: Mapping[tuple[Kind, Kind], Callable[[Doc], Doc]] = {
    (kinds.EVENT, kinds.EVENT_V1): _renamed(_EVENT_FIELDS),
    (kinds.EVENT_V1, kinds.EVENT): _renamed({new: old for old, new in _EVENT_FIELDS.items()}),
    (kinds.HORIZONTAL_POD_AUTOSCALER, kinds.HORIZONTAL_POD_AUTOSCALER_V1): autoscaler_versions.to_v1,
    (kinds.HORIZONTAL_POD_AUTOSCALER_V1, kinds.HORIZONTAL_POD_AUTOSCALER): autoscaler_versions.to_v2,
    (kinds.POD_GROUP, kinds.POD_GROUP_BETA): _group_to_beta,
    (kinds.POD_GROUP_BETA, kinds.POD_GROUP): _group_to_alpha,
    (kinds.WORKLOAD, kinds.WORKLOAD_BETA): _workload_to_beta,
    (kinds.WORKLOAD_BETA, kinds.WORKLOAD): _workload_to_alpha,
}
