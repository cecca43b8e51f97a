"""HorizontalPodAutoscalers as autoscaling/v1 and autoscaling/v2 show them.

v1 has fields for one metric only, the utilization of cpu. As in the original, everything else that v2 can say is kept
in annotations of the v1 object, as JSON: further metrics, current metrics, conditions and the scaling behaviour (in the
spelling of the original's internal types). Annotations that cannot be read are dropped. Of several metrics of cpu
utilization v1 shows the first and loses the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT = _PREFIX + "metrics", _PREFIX + "current-metrics"
_CONDITIONS, _BEHAVIOR = _PREFIX + "conditions", _PREFIX + "behavior"
_ANNOTATIONS = frozenset({_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR})
_SPEC, _STATUS = ("scaleTargetRef", "minReplicas", "maxReplicas"), ("observedGeneration", "lastScaleTime")
_FIELD_OF_TYPE = {
    "Resource": "resource", "ContainerResource": "containerResource", "Pods": "pods", "Object": "object",
    "External": "external",
}  # fmt: skip
_RULES = ("ScaleUp", "ScaleDown")
_RULE = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")
_POLICY = ("Type", "Value", "PeriodSeconds")


def to_v1(doc: Doc) -> Doc:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    metrics, current = spec.get("metrics") or (), status.get("currentMetrics") or ()
    further = [_metric_to_v1(one) for one in metrics if _cpu_utilization(one, "target") is None]
    notes: dict[str, str] = {}
    for key, value in (
        (_METRICS, further),
        (_CURRENT, [_current_to_v1(one) for one in current]),
        (_CONDITIONS, [_ordered(one, _CONDITION) for one in status.get("conditions") or ()]),
        (_BEHAVIOR, _behavior_to_v1(spec["behavior"]) if spec.get("behavior") else None),
    ):
        if value:
            notes[key] = _encoded(value)
    shown = {key: spec[key] for key in _SPEC if key in spec}
    _put(shown, "targetCPUUtilizationPercentage", _first(_cpu_utilization(one, "target") for one in metrics))
    counted = {key: status[key] for key in _STATUS if key in status}
    counted |= {key: status.get(key, 0) for key in ("currentReplicas", "desiredReplicas")}
    _put(counted, "currentCPUUtilizationPercentage", _first(_cpu_utilization(one, "current") for one in current))
    return {**doc, "metadata": _annotated(doc, notes), "spec": shown, "status": counted}


def to_v2(doc: Doc) -> Doc:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    notes = (doc.get("metadata") or {}).get("annotations") or {}
    cpu, used = spec.get("targetCPUUtilizationPercentage"), status.get("currentCPUUtilizationPercentage")
    metrics = _decoded(notes.get(_METRICS), lambda found: [_metric_to_v2(one) for one in found]) or []
    if cpu is not None:
        metrics.append(_cpu("target", {"type": "Utilization", "averageUtilization": cpu}))
    shown = {key: value for key, value in spec.items() if key != "targetCPUUtilizationPercentage"}
    if metrics:
        shown["metrics"] = metrics
    _put(shown, "behavior", _decoded(notes.get(_BEHAVIOR), _behavior_to_v2))
    counted = {key: value for key, value in status.items() if key != "currentCPUUtilizationPercentage"}
    current = _decoded(notes.get(_CURRENT), lambda found: [_current_to_v2(one) for one in found])
    if current is None and used is not None:
        current = [_cpu("current", {"averageUtilization": used})]
    _put(counted, "currentMetrics", current)
    _put(counted, "conditions", _decoded(notes.get(_CONDITIONS), list))
    converted = {**doc, "metadata": _annotated(doc, {}), "spec": shown}
    return {**converted, "status": counted} if "status" in doc else converted


def _annotated(doc: Doc, notes: dict[str, str]) -> Doc:
    """The metadata with these notes in place of those that are there."""
    metadata = dict(doc.get("metadata") or {})
    given = metadata.pop("annotations", None) or {}
    annotations = {key: value for key, value in given.items() if key not in _ANNOTATIONS} | notes
    return {**metadata, "annotations": annotations} if annotations else metadata


def _cpu(word: str, amount: Doc) -> Doc:
    return {"type": "Resource", "resource": {"name": "cpu", word: amount}}


def _cpu_utilization(metric: Doc, word: str) -> int | None:
    resource = metric.get("resource") or {}
    used: int | None = (resource.get(word) or {}).get("averageUtilization")
    return used if resource.get("name") == "cpu" else None


def _first(found: Iterable[int | None]) -> int | None:
    return next((one for one in found if one is not None), None)


def _put(doc: Doc, key: str, value: Any) -> None:
    if value is not None:
        doc[key] = value


# -- one metric: `word` is target or current --------------------------------------------------------------------------

_METRIC = (
    "name", "target", "metricName", "targetAverageUtilization", "targetValue", "targetAverageValue", "selector",
    "metricSelector", "averageValue", "container",
)  # fmt: skip
_CURRENT_METRIC = tuple(name.replace("target", "current") if name != "target" else name for name in _METRIC)
_EXTERNAL = ("metricName", "metricSelector", "targetValue", "currentValue", "targetAverageValue", "currentAverageValue")
_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message")
_REFERENCE = ("kind", "name", "apiVersion")


def _metric_to_v1(metric: Doc) -> Doc:
    return _to_v1(metric, "target", _METRIC)


def _current_to_v1(metric: Doc) -> Doc:
    return _to_v1(metric, "current", _CURRENT_METRIC)


def _to_v1(metric: Doc, word: str, order: tuple[str, ...]) -> Doc:
    """The fields of v1 in the order in which the original writes them."""
    type_ = metric.get("type") or ""
    field = _FIELD_OF_TYPE.get(type_, "")
    source = metric.get(field)
    if source is None:
        return {"type": type_}
    amount, identity = source.get(word) or {}, source.get("metric") or {}
    made: Doc = {key: source[key] for key in ("name", "container") if key in source}
    _put(made, "metricName", identity.get("name"))
    _put(made, "metricSelector" if type_ == "External" else "selector", identity.get("selector"))
    if "describedObject" in source:
        made["target"] = _ordered(source["describedObject"], _REFERENCE)
    _put(made, word + "AverageUtilization", amount.get("averageUtilization"))
    _put(made, "averageValue" if type_ == "Object" else word + "AverageValue", amount.get("averageValue"))
    _put(made, word + "Value", amount.get("value"))
    if type_ == "Object" or (type_ == "External" and word == "current"):
        made.setdefault(word + "Value", "0")
    elif word == "current":
        made.setdefault("currentAverageValue", "0")
    return {"type": type_, field: _ordered(made, _EXTERNAL if type_ == "External" else order)}


def _metric_to_v2(metric: Doc) -> Doc:
    made = _to_v2(metric, "target")
    for field in _FIELD_OF_TYPE.values():
        if field in made:
            target = made[field]["target"]
            if "averageUtilization" in target:
                type_ = "Utilization"
            elif "averageValue" in target:
                type_ = "AverageValue"
                target.pop("value", None)
            else:
                type_ = "Value"
            made[field]["target"] = {"type": type_, **target}
    return made


def _current_to_v2(metric: Doc) -> Doc:
    return _to_v2(metric, "current")


def _to_v2(metric: Doc, word: str) -> Doc:
    type_ = metric.get("type") or ""
    field = _FIELD_OF_TYPE.get(type_, "")
    source = metric.get(field)
    if source is None:
        return {"type": type_}
    made: Doc = {key: source[key] for key in ("name", "container") if key in source}
    if "metricName" in source:
        made["metric"] = {"name": source["metricName"]}
        _put(made["metric"], "selector", source.get("metricSelector") or source.get("selector"))
    if "target" in source:
        made["describedObject"] = source["target"]
    amount: Doc = {}
    _put(amount, "averageUtilization", source.get(word + "AverageUtilization"))
    _put(amount, "averageValue", source.get("averageValue", source.get(word + "AverageValue")))
    _put(amount, "value", source.get(word + "Value"))
    made[word] = amount
    return {"type": type_, field: made}


# -- the behaviour, in the spelling of the internal types -------------------------------------------------------------


def _behavior_to_v1(behavior: Doc) -> Doc:
    return {rule: _rule_to_v1(behavior.get(_lower(rule))) for rule in _RULES}


def _rule_to_v1(rule: Doc | None) -> Doc | None:
    if rule is None:
        return None
    made = {name: rule.get(_lower(name)) for name in _RULE}
    policies = made["Policies"]
    if policies is not None:
        made["Policies"] = [{name: policy.get(_lower(name)) for name in _POLICY} for policy in policies]
    return made


def _behavior_to_v2(behavior: Doc) -> Doc:
    return {_lower(rule): _rule_to_v2(behavior[rule]) for rule in _RULES if behavior.get(rule)}


def _rule_to_v2(rule: Doc) -> Doc:
    made = {_lower(name): rule[name] for name in _RULE if rule.get(name) is not None}
    if "policies" in made:
        made["policies"] = [{_lower(name): value for name, value in policy.items()} for policy in made["policies"]]
    return made


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]


def _ordered(doc: Doc, order: Iterable[str]) -> Doc:
    return {key: doc[key] for key in order if key in doc}


def _encoded(value: Any) -> str:
    """JSON as Go writes it: without spaces, and with the letters that mean something in HTML escaped."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _decoded(text: str | None, read: Callable[[Any], Any]) -> Any:
    """What an annotation says; None if there is none or it is not what it should be."""
    try:
        return None if text is None else read(json.loads(text))
    except (ValueError, TypeError, AttributeError, KeyError):
        return None
