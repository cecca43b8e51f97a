"""PodGroups and Workloads of scheduling.k8s.io: their priority, the Workload they refer to, the rules of their fields.

Rules are those of the version that a writer speaks, because the versions differ in fields and in what may change
later: in v1alpha2 nothing may, in v1beta1 a gang's minimum may. As in the originals, a field that an update leaves as
it was is not looked at again, and one that may not change is refused without a look at its new value. Fields of
features that are off by default (claims of groups, composite groups, a group's own preemption policy) are dropped, as
in the originals; there in silence, here with a warning to the writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.builtin import priority_of
from fairlead.cluster.admission.names import dns_label, dns_subdomain, path_segment, qualified_name
from fairlead.cluster.admission.problems import IMMUTABLE, forbidden
from fairlead.core.model import kinds as k
from fairlead.core.model.priorities import HIGHEST_PRIORITY

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.core.model.kinds import Kind

KINDS = frozenset({k.POD_GROUP_BETA, k.WORKLOAD_BETA})
"""As they are stored."""
_MOST_TEMPLATES = 8
_COMPOSITE = "groups of groups are not scheduled"
_OFF: Mapping[str, str] = {
    "resourceClaims": "claims of groups are not served, name the claim in each pod",
    "preemptionPolicy": "say Never in the priority class of the members",
    "parentCompositePodGroupName": _COMPOSITE,
    "compositePodGroupTemplates": _COMPOSITE,
}
"""Fields of features that are off by default in both versions, with what is said of them."""
_STATUSES = ("False", "True", "Unknown")


# -- what admission makes of them -------------------------------------------------------------------------------------


def without_what_is_off(doc: Doc) -> Doc:
    spec = _dropped(doc.get("spec") or {})
    if spec.get("podGroupTemplates"):
        spec["podGroupTemplates"] = [_dropped(template) for template in spec["podGroupTemplates"]]
    return {**doc, "spec": spec}


def warnings_of_what_is_off(doc: Doc) -> Iterator[str]:
    """What is said of each field that is dropped."""
    spec = doc.get("spec") or {}
    yield from _warnings_at("spec", spec)
    for index, template in enumerate(spec.get("podGroupTemplates") or ()):
        yield from _warnings_at(f"spec.podGroupTemplates[{index}]", template)


def _warnings_at(path: str, spec: Doc) -> Iterator[str]:
    return (f"{path}.{name} is dropped: {words}" for name, words in _OFF.items() if spec.get(name))


def _dropped(spec: Doc) -> Doc:
    return {name: value for name, value in spec.items() if name not in _OFF}


def with_priority(view: DocView, doc: Doc) -> Doc:
    """A new group with the priority of its class."""
    name, spec = doc["metadata"]["name"], {**doc["spec"]}
    value, _ = priority_of(view, k.POD_GROUP_BETA, name, spec)
    given = spec.get("priority")
    if given is not None and given != value:
        raise forbidden(
            k.POD_GROUP_BETA,
            name,
            (
                f"priority set in the pod group ({given}) must match the priority computed ({value}) based on the "
                "priority class set in the spec"
            ),
        )
    return {**doc, "spec": {**spec, "priority": value}}


def check_reference(view: DocView, doc: Doc) -> None:
    """A group that names a Workload names one that is there, and one of its templates. (So it is in v1alpha2 only.)"""
    reference = doc["spec"].get("workloadRef")
    if reference is None:
        return
    name, template = reference["workloadName"], reference["templateName"]
    workload = view.get(k.WORKLOAD_BETA, doc["metadata"].get("namespace") or "", name)
    if workload is None:
        raise _rejected(doc, f'Workload "{name}" not found')
    if "deletionTimestamp" in workload["metadata"]:
        raise _rejected(doc, f'Workload "{name}" is being deleted')
    if template not in [one["name"] for one in workload["spec"].get("podGroupTemplates", ())]:
        raise _rejected(doc, f'PodGroupTemplate "{template}" not found in Workload "{name}"')


def _rejected(doc: Doc, why: str) -> Exception:
    return forbidden(k.POD_GROUP_BETA, doc["metadata"]["name"], f"PodGroup rejected: {why}")


# -- rules ------------------------------------------------------------------------------------------------------------

Check = Callable[["ValidationProblems", str, Any, Any], None]
"""Looks at a value, with the one before if there was one."""


def _fine(problems: ValidationProblems, path: str) -> None:
    """Nothing is said."""


@dataclass(frozen=True, slots=True)
class GroupField:
    check: Check
    fixed: bool = True
    """Whether it stays as it was first written."""
    absent: Callable[[ValidationProblems, str], None] = _fine
    """What is said if it is not there."""


def _walk(problems: ValidationProblems, path: str, fields: Mapping[str, GroupField], new: Doc, old: Doc | None) -> None:
    for name, field in fields.items():
        value, before = new.get(name), None if old is None else old.get(name)
        where = f"{path}.{name}"
        if old is not None and value == before:
            continue
        if old is not None and field.fixed:
            problems.invalid(where, None, IMMUTABLE)
        elif value is None or value == []:
            field.absent(problems, where)
        else:
            field.check(problems, where, value, before)


def check_group_spec(problems: ValidationProblems, kind: Kind, doc: Doc, old: Doc | None) -> None:
    """The spec of a group, or of a Workload, by the rules of the version that is spoken."""
    spec, before = doc.get("spec") or {}, None if old is None else old.get("spec") or {}
    if kind is k.WORKLOAD_BETA:
        _check_union(problems, "spec", spec, ("podGroupTemplates", "compositePodGroupTemplates"))
        _check_same_priority(problems, spec.get("podGroupTemplates") or ())
    _walk(problems, "spec", _FIELDS[kind], spec, before)


def check_conditions(problems: ValidationProblems, conditions: Sequence[Doc]) -> None:
    for index, condition in enumerate(conditions):
        path = f"status.conditions[{index}]"
        if not condition.get("type"):
            problems.required(f"{path}.type")
        problems.not_one_of(f"{path}.status", condition.get("status", ""), _STATUSES)
        if not condition.get("lastTransitionTime"):
            problems.required(f"{path}.lastTransitionTime")
        if not condition.get("reason"):
            problems.required(f"{path}.reason")


def _check_union(problems: ValidationProblems, path: str, value: Doc, members: Sequence[str]) -> None:
    given = [name for name in members if value.get(name) is not None and value[name] != []]
    listed = ", ".join(f"`{name}`" for name in members)
    if not given:
        problems.invalid(path, "", f"must specify one of: {listed}")
    elif len(given) > 1:
        problems.invalid(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {listed}")


def _union(*members: str) -> Check:
    return lambda problems, path, value, _: _check_union(problems, path, value, members)


def _check_policy(problems: ValidationProblems, path: str, policy: Doc, before: Doc | None) -> None:
    _check_union(problems, path, policy, ("basic", "gang"))
    if before is not None:
        if policy.get("basic") != before.get("basic"):
            problems.invalid(f"{path}.basic", None, IMMUTABLE)
        if ("gang" in policy) != ("gang" in before):
            why = "field cannot be set once created" if "gang" in policy else "field cannot be cleared once set"
            problems.invalid(f"{path}.gang", None, why)
            return
    if "gang" in policy:
        count = policy["gang"].get("minCount", 0)
        if not count:
            problems.required(f"{path}.gang.minCount")
        elif count < 0:
            problems.invalid(f"{path}.gang.minCount", count, "must be greater than or equal to 1")


def _no_policy(problems: ValidationProblems, path: str) -> None:
    _check_policy(problems, path, {}, None)


def _no_templates(problems: ValidationProblems, path: str) -> None:
    problems.required(path)


def _check_constraints(problems: ValidationProblems, path: str, constraints: Doc, _: Any) -> None:
    topology = constraints.get("topology") or ()
    if len(topology) > 1:
        _too_many(problems, f"{path}.topology", len(topology), 1)
        return
    for index, one in enumerate(topology):
        _named(qualified_name)(problems, f"{path}.topology[{index}].key", one.get("key", ""), None)


def _too_many(problems: ValidationProblems, path: str, count: int, limit: int) -> None:
    items = "item" if limit == 1 else "items"
    problems.add("FieldValueTooMany", path, f"Too many: {count}: must have at most {limit} {items}")


def _named(rule: Callable[[str], Sequence[str]], *, required: bool = True) -> Check:
    def check(problems: ValidationProblems, path: str, name: str, _: Any) -> None:
        if name:
            problems.each_invalid(path, name, rule(name))
        elif required:
            problems.required(path)

    return check


def _check_priority(problems: ValidationProblems, path: str, priority: int, _: Any) -> None:
    if priority > HIGHEST_PRIORITY:
        problems.invalid(path, priority, f"must be less than or equal to {HIGHEST_PRIORITY}")


def _check_mode(problems: ValidationProblems, path: str, mode: str, _: Any) -> None:
    problems.not_one_of(path, mode, ("Pod", "PodGroup"))


def _check_old_reference(problems: ValidationProblems, path: str, reference: Doc, _: Any) -> None:
    _check_union(problems, path, reference, ("workload",))
    if "workload" in reference:
        _reference("podGroupTemplateName")(problems, f"{path}.workload", reference["workload"], None)


def _reference(template: str) -> Check:
    def check(problems: ValidationProblems, path: str, reference: Doc, _: Any) -> None:
        _named(dns_subdomain)(problems, f"{path}.workloadName", reference.get("workloadName", ""), None)
        _named(dns_label)(problems, f"{path}.{template}", reference.get(template, ""), None)

    return check


def _check_controller(problems: ValidationProblems, path: str, reference: Doc, _: Any) -> None:
    _named(dns_subdomain, required=False)(problems, f"{path}.apiGroup", reference.get("apiGroup", ""), None)
    for name in ("kind", "name"):
        _named(path_segment)(problems, f"{path}.{name}", reference.get(name, ""), None)


def _templates(fields: Mapping[str, GroupField]) -> Check:
    def check(problems: ValidationProblems, path: str, templates: Sequence[Doc], before: Sequence[Doc] | None) -> None:
        if len(templates) > _MOST_TEMPLATES:
            _too_many(problems, path, len(templates), _MOST_TEMPLATES)
            return
        known = {one["name"]: one for one in before or ()}
        names = [one.get("name", "") for one in templates]
        if before is not None:
            _check_same_templates(problems, path, names, list(known))
        for index, template in enumerate(templates):
            if names[index] in names[:index]:
                problems.duplicate_as_is(f"{path}[{index}]", _in_order(template), "")
            _walk(problems, f"{path}[{index}]", fields, template, known.get(names[index]))

    return check


def _check_same_templates(problems: ValidationProblems, path: str, names: Sequence[str], before: Sequence[str]) -> None:
    """Templates neither come nor go."""
    for index, name in enumerate(names):
        if name not in before:
            problems.forbidden(f"{path}[{index}]", "item may not be added")
    for name in before:
        if name not in names:
            problems.forbidden(path, "item may not be removed")


def _check_same_priority(problems: ValidationProblems, templates: Sequence[Doc]) -> None:
    if len({(one.get("priorityClassName") or "", one.get("priority")) for one in templates}) > 1:
        problems.invalid("spec", None, "detected multiple priority configurations")


def _in_order(template: Doc) -> Doc:
    """As the original's struct has its fields."""
    order = ("name", "schedulingPolicy", "schedulingConstraints", "disruptionMode", "priorityClassName", "priority")
    return {name: template.get(name) for name in order if name in template or name == "schedulingConstraints"}


def _common(policy: GroupField, mode: GroupField) -> dict[str, GroupField]:
    """What groups and the templates of Workloads both say, in the original's order."""
    return {
        "schedulingPolicy": policy,
        "schedulingConstraints": GroupField(_check_constraints),
        "disruptionMode": mode,
        "priorityClassName": GroupField(_named(dns_subdomain, required=False)),
        "priority": GroupField(_check_priority),
    }


_NAME, _CONTROLLER = GroupField(_named(dns_label), fixed=False), GroupField(_check_controller)
_ALPHA = _common(GroupField(_check_policy, absent=_no_policy), GroupField(_check_mode))
_BETA = _common(GroupField(_check_policy, fixed=False, absent=_no_policy), GroupField(_union("single", "all")))

_FIELDS: Mapping[Kind, Mapping[str, GroupField]] = {
    k.POD_GROUP: {"podGroupTemplateRef": GroupField(_check_old_reference), **_ALPHA},
    k.POD_GROUP_BETA: {"workloadRef": GroupField(_reference("templateName")), **_BETA},
    k.WORKLOAD: {
        "controllerRef": _CONTROLLER,
        "podGroupTemplates": GroupField(_templates({"name": _NAME, **_ALPHA}), absent=_no_templates),
    },
    k.WORKLOAD_BETA: {
        "controllerRef": _CONTROLLER,
        "podGroupTemplates": GroupField(_templates({"name": _NAME, **_BETA}), fixed=False),
    },
}
