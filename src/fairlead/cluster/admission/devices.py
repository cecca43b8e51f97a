"""Defaults and rules of resource.k8s.io: claims, templates, slices and device classes.

Expressions must compile, fit in their types, return bool and stay within the cost limit. An allocation, once written,
may be taken away but not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairlead.cel.selectors import MAX_LENGTH, compile_selector, is_too_complex, selector_fault, selector_program_fault
from fairlead.cluster.admission.names import dns_label, dns_subdomain
from fairlead.cluster.admission.problems import IMMUTABLE
from fairlead.core.model import kinds as k
from fairlead.core.model.devices import SelectorInvalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_MODES = ("All", "ExactCount")
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_MOST_DEVICES, _MOST_WITH_TAINTS_OR_COUNTERS, _MOST_CONSUMERS, _MOST_REQUESTS = 128, 64, 256, 32


# ---- defaults ----


def _default_request(request: Doc) -> Doc:
    mode = request.get("allocationMode") or "ExactCount"
    out = {**request, "allocationMode": mode}
    if mode == "ExactCount" and not request.get("count"):
        out["count"] = 1
    if request.get("tolerations"):
        out["tolerations"] = [{"operator": "Equal", **toleration} for toleration in request["tolerations"]]
    return out


def _default_spec(spec: Doc) -> Doc:
    devices = spec.get("devices") or {}
    if not devices.get("requests"):
        return spec
    requests = []
    for request in devices["requests"]:
        out = dict(request)
        if isinstance(request.get("exactly"), dict):
            out["exactly"] = _default_request(request["exactly"])
        if request.get("firstAvailable"):
            out["firstAvailable"] = [_default_request(one) for one in request["firstAvailable"]]
        requests.append(out)
    return {**spec, "devices": {**devices, "requests": requests}}


def _default_claim(doc: Doc) -> Doc:
    return {**doc, "spec": _default_spec(doc.get("spec") or {}), "status": doc.get("status") or {}}


def _default_template(doc: Doc) -> Doc:
    spec = doc.get("spec") or {}
    return {**doc, "spec": {"metadata": {}, **spec, "spec": _default_spec(spec.get("spec") or {})}}


DEVICE_DEFAULTS: dict[Kind, Callable[[Doc], Doc]] = {
    k.RESOURCE_CLAIM: _default_claim,
    k.RESOURCE_CLAIM_TEMPLATE: _default_template,
}


# ---- rules ----


def _check_selectors(problems: ValidationProblems, path: str, selectors: Sequence[Doc]) -> None:
    for at, selector in enumerate(selectors):
        where = f"{path}[{at}]"
        expression = (selector.get("cel") or {}).get("expression")
        if expression is None:
            problems.required(f"{where}.cel")
            continue
        path_of_text = f"{where}.cel.expression"
        if len(expression.encode()) > MAX_LENGTH:
            problems.too_long(path_of_text, MAX_LENGTH)
        elif fault := selector_fault(expression):
            problems.invalid(path_of_text, expression, fault)
        elif fault := selector_program_fault(expression):
            problems.internal(path_of_text, fault)
        elif is_too_complex(expression):
            problems.forbidden(path_of_text, "too complex, exceeds cost limit")
        else:
            _check_runs(problems, path_of_text, expression)


def _check_runs(problems: ValidationProblems, path: str, expression: str) -> None:
    """An expression that the scheduler could not evaluate is refused here rather than there."""
    try:
        compile_selector(expression)
    except SelectorInvalid as error:
        problems.invalid(path, expression, str(error))


def _check_request(problems: ValidationProblems, path: str, request: Doc) -> None:
    if not request.get("deviceClassName"):
        problems.required(f"{path}.deviceClassName")
    else:
        name = request["deviceClassName"]
        problems.each_invalid(f"{path}.deviceClassName", name, dns_subdomain(name))
    _check_selectors(problems, f"{path}.selectors", request.get("selectors") or ())
    mode, count = request.get("allocationMode"), request.get("count")
    if mode == "All":
        if count:
            problems.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount":
        if count is not None and count <= 0:
            problems.invalid(f"{path}.count", count, "must be greater than zero")
    else:
        problems.unsupported(f"{path}.allocationMode", mode, _MODES)


def _check_requests(problems: ValidationProblems, path: str, requests: Sequence[Doc]) -> set[str]:
    """Check the requests of a claim; returns the names by which constraints and configurations may refer to them."""
    names: set[str] = set()
    if len(requests) > _MOST_REQUESTS:
        problems.add("FieldValueTooMany", path, f"Too many: {len(requests)}: must have at most {_MOST_REQUESTS} items")
    for at, request in enumerate(requests):
        where, name = f"{path}[{at}]", request.get("name") or ""
        problems.each_invalid(f"{where}.name", name, dns_label(name))
        if name in names:
            problems.duplicate(where, name)
        names.add(name)
        exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
        if (exactly is None) == (not alternatives):
            if exactly is None:
                problems.required(where, "exactly one of `exactly` or `firstAvailable` is required")
            else:
                problems.invalid(where, None, "exactly one of `exactly` or `firstAvailable` is required")
        if exactly is not None:
            _check_request(problems, f"{where}.exactly", exactly)
        for inner, one in enumerate(alternatives or ()):
            _check_request(problems, f"{where}.firstAvailable[{inner}]", one)
            names.add(f"{name}/{one.get('name')}")
    return names


def _check_spec(problems: ValidationProblems, spec: Doc, path: str) -> None:
    devices = spec.get("devices") or {}
    names = _check_requests(problems, f"{path}.devices.requests", devices.get("requests") or ())
    for at, constraint in enumerate(devices.get("constraints") or ()):
        where = f"{path}.devices.constraints[{at}]"
        _check_references(problems, f"{where}.requests", constraint.get("requests") or (), names)
        if not constraint.get("matchAttribute") and not constraint.get("distinctAttribute"):
            problems.required(f"{where}.matchAttribute")
    for at, config in enumerate(devices.get("config") or ()):
        where = f"{path}.devices.config[{at}]"
        _check_references(problems, f"{where}.requests", config.get("requests") or (), names)
        if config.get("opaque") is None:
            problems.required(f"{where}.opaque")


def _check_references(problems: ValidationProblems, path: str, wanted: Sequence[str], names: set[str]) -> None:
    for at, name in enumerate(wanted):
        if name not in names:
            detail = (
                "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
            )
            problems.invalid(f"{path}[{at}]", name, detail)


def _claim(problems: ValidationProblems, doc: Doc) -> None:
    _check_spec(problems, doc.get("spec") or {}, "spec")


def _template(problems: ValidationProblems, doc: Doc) -> None:
    _check_spec(problems, doc["spec"].get("spec") or {}, "spec.spec")


def _class(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc.get("spec") or {}
    _check_selectors(problems, "spec.selectors", spec.get("selectors") or ())
    for at, config in enumerate(spec.get("config") or ()):
        if config.get("opaque") is None:
            problems.required(f"spec.config[{at}].opaque")


def _slice(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc.get("spec") or {}
    if not spec.get("driver"):
        problems.required("spec.driver")
    pool = spec.get("pool") or {}
    if not pool.get("name"):
        problems.required("spec.pool.name")
    if (pool.get("resourceSliceCount") or 0) <= 0:
        problems.invalid(
            "spec.pool.resourceSliceCount", pool.get("resourceSliceCount") or 0, "must be greater than zero"
        )
    problems.negative("spec.pool.generation", pool.get("generation"))
    places = [name for name in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection") if spec.get(name)]
    listed = "`nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"
    if not places:
        problems.required("spec", f"exactly one of {listed} is required")
    elif len(places) > 1:
        shown = "{" + ", ".join(f'"{name}"' for name in places) + "}"
        problems.invalid("spec", shown, f"exactly one of {listed} is required, but multiple fields are set")
    _check_devices(problems, spec.get("devices") or ())


def _check_devices(problems: ValidationProblems, devices: Sequence[Doc]) -> None:
    special = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    most = _MOST_WITH_TAINTS_OR_COUNTERS if special else _MOST_DEVICES
    if len(devices) > most:
        problems.add("FieldValueTooMany", "spec.devices", f"Too many: {len(devices)}: must have at most {most} items")
    seen: set[str] = set()
    for at, device in enumerate(devices):
        path, name = f"spec.devices[{at}]", device.get("name") or ""
        problems.each_invalid(f"{path}.name", name, dns_label(name))
        if name in seen:
            problems.duplicate(path, name)
        seen.add(name)
        for inner, taint in enumerate(device.get("taints") or ()):
            problems.not_one_of(f"{path}.taints[{inner}].effect", taint.get("effect"), _EFFECTS)
        for key, attribute in (device.get("attributes") or {}).items():
            values = [value for value in attribute.values() if value is not None]
            if len(values) != 1:
                problems.required(f"{path}.attributes[{key}]", "exactly one value must be specified")


DEVICE_RULES: dict[Kind, Callable[[ValidationProblems, Doc], None]] = {
    k.RESOURCE_CLAIM: _claim,
    k.RESOURCE_CLAIM_TEMPLATE: _template,
    k.RESOURCE_SLICE: _slice,
    k.DEVICE_CLASS: _class,
}


# ---- updates ----


def _same_spec(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    if (old.get("spec") or {}) != (new.get("spec") or {}):
        problems.invalid("spec", new.get("spec"), IMMUTABLE)


def _slice_update(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    before, after = old["spec"], new["spec"]
    for path, value, was in (
        ("spec.driver", after.get("driver"), before.get("driver")),
        ("spec.pool.name", after["pool"].get("name"), before["pool"].get("name")),
        ("spec.nodeName", after.get("nodeName"), before.get("nodeName")),
    ):
        if value != was:
            problems.invalid(path, value, IMMUTABLE)


DEVICE_STEPS: dict[Kind, Callable[[ValidationProblems, Doc, Doc], None]] = {
    k.RESOURCE_CLAIM: _same_spec,
    k.RESOURCE_CLAIM_TEMPLATE: _same_spec,
    k.RESOURCE_SLICE: _slice_update,
}


def check_claim_status(problems: ValidationProblems, old: Doc, new: Doc) -> None:
    """The status of a claim: who uses it and what it was given."""
    before, after = old.get("status") or {}, new.get("status") or {}
    reserved: list[Any] = after.get("reservedFor") or []
    allocation = after.get("allocation")
    if len(reserved) > _MOST_CONSUMERS:
        text = f"Too many: {len(reserved)}: must have at most {_MOST_CONSUMERS} items"
        problems.add("FieldValueTooMany", "status.reservedFor", text)
    uids = [user.get("uid") for user in reserved]
    for at, uid in enumerate(uids):
        if uid in uids[:at]:
            problems.duplicate(f"status.reservedFor[{at}]", uid)
    if reserved and allocation is None:
        problems.forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    if new["metadata"].get("deletionTimestamp") and [u for u in uids if u not in _uids(before)]:
        problems.forbidden(
            "status.reservedFor",
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
        )
    was = before.get("allocation")
    if was is not None and allocation is not None and was != allocation:
        problems.invalid("status.allocation", allocation, IMMUTABLE)


def _uids(status: Doc) -> list[Any]:
    return [user.get("uid") for user in status.get("reservedFor") or ()]
