"""CustomResourceDefinitions: their defaults, their rules, their status, and the kinds that come of them.

A definition takes effect with the write that stores it: the names are judged, the conditions set and the kinds served
at once, where the original has controllers that do so a moment later. Conversion between versions is by name only:
there are no webhooks. A definition of a kind that is built in is stored and changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fairlead.cel.patterns import pattern_fault
from fairlead.cluster.custom.rule_checks import check_rules
from fairlead.cluster.store.schema import decode_as
from fairlead.core.model.kinds import CUSTOM_RESOURCE_DEFINITION, Definition, Kind, served_kinds
from fairlead.errors import BadRequest

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc, DocView

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_APPROVED = "api-approved.kubernetes.io"
_PRIORITY = re.compile(r"v([0-9]{1,18})(?:(alpha|beta)([0-9]{1,18}))?")
_BUILT_IN = {(kind.group, kind.plural) for kind in served_kinds()}
_TYPES = ("object", "array", "string", "integer", "number", "boolean")
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_SCHEMA_TYPE = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_DEEPEST = 60
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LONGEST_LABEL = 63
_TOO_LONG = f"must be no more than {_LONGEST_LABEL} bytes"
_NO_LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    " '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Sorts as clients prefer: v2, v1, v2beta1, v1beta2, v1alpha1, then anything else by name."""
    match = _PRIORITY.fullmatch(version)
    if match is None:
        return 3, 0, 0, version
    major, stability, minor = match.groups()
    return {None: 0, "beta": 1, "alpha": 2}[stability], -int(major), -int(minor or 0), version


def is_built_in(doc: Doc) -> bool:
    """Whether the definition is of a kind that is served without it."""
    spec = doc.get("spec") or {}
    return (spec.get("group"), (spec.get("names") or {}).get("plural")) in _BUILT_IN


# -- kinds ------------------------------------------------------------------------------------------------------------


def kinds_of(doc: Doc) -> list[Kind]:
    """The kinds of a definition, the stored one first; none if the kind is built in."""
    if is_built_in(doc):
        return []
    spec = doc["spec"]
    stored = next(version for version in spec["versions"] if version["storage"])
    first = _kind(spec, stored, None)
    others = [_kind(spec, version, first) for version in spec["versions"] if version is not stored]
    return [first, *others]


def served_versions(doc: Doc) -> set[str]:
    return {version["name"] for version in doc["spec"]["versions"] if version["served"]}


def _kind(spec: Doc, version: Doc, stored_as: Kind | None) -> Kind:
    names, subresources = spec["names"], version.get("subresources") or {}
    definition = Definition(
        name=f"{names['plural']}.{spec['group']}",
        schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        scale=subresources.get("scale"),
        selectable=tuple(field["jsonPath"] for field in version.get("selectableFields") or ()),
    )
    return Kind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular", ""),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=frozenset(subresources),
        stored_as=stored_as,
        definition=definition,
    )


def is_established(doc: Doc) -> bool:
    """Whether the names were accepted, so that the kinds are served."""
    conditions = (doc.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


# -- defaults and status ----------------------------------------------------------------------------------------------


def default_definition(doc: Doc) -> Doc:
    spec = dict(doc.get("spec") or {})
    names = dict(spec.get("names") or {})
    kind = names.get("kind", "")
    if not names.get("singular"):
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = kind + "List"
    spec["names"] = names
    spec.setdefault("conversion", {"strategy": "None"})
    return {**doc, "spec": spec}


def with_status(doc: Doc, view: DocView, now: str) -> Doc:
    """The definition with its names accepted (or not) and its versions remembered."""
    spec, status = doc["spec"], dict(doc.get("status") or {})
    problem = _name_conflict(doc, view.list(CUSTOM_RESOURCE_DEFINITION))
    conditions = list(status.get("conditions") or ())
    accepted = ("True", "NoConflicts", "no conflicts found") if problem is None else ("False", problem[0], problem[1])
    _set(conditions, "NamesAccepted", accepted, now)
    established = (
        ("True", "InitialNamesAccepted", "the initial names have been accepted")
        if problem is None
        else ("False", "NotAccepted", "not all names are accepted")
    )
    if problem is None or not is_established(doc):
        _set(conditions, "Established", established, now)
    status["conditions"] = conditions
    status["acceptedNames"] = (
        spec["names"]
        if problem is None
        else status.get("acceptedNames")
        or {
            "plural": "",
            "kind": "",
        }
    )
    stored = list(status.get("storedVersions") or ())
    stored += [version["name"] for version in spec["versions"] if version["storage"] and version["name"] not in stored]
    status["storedVersions"] = stored
    return {**doc, "status": status}


def terminating_status(doc: Doc, now: str) -> Doc:
    """The definition while its objects are being removed."""
    conditions = list((doc.get("status") or {}).get("conditions") or ())
    _set(
        conditions, "Terminating", ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"), now
    )
    finalizers = [*(name for name in doc["metadata"].get("finalizers") or () if name != CLEANUP), CLEANUP]
    return {
        **doc,
        "metadata": {**doc["metadata"], "finalizers": finalizers},
        "status": {**(doc.get("status") or {}), "conditions": conditions},
    }


def _set(conditions: list[Doc], type_: str, value: tuple[str, str, str], now: str) -> None:
    status, reason, message = value
    made = {
        "type": type_,
        "status": status,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
    for index, one in enumerate(conditions):
        if one["type"] == type_:
            if (one["status"], one.get("reason")) != (status, reason):
                conditions[index] = made
            return
    conditions.append(made)


def _name_conflict(doc: Doc, others: Iterable[Doc]) -> tuple[str, str] | None:
    """The reason and words of a clash with another definition of the same group."""
    name, spec = doc["metadata"]["name"], doc["spec"]
    names = spec["names"]
    for other in others:
        if other["metadata"]["name"] == name or other["spec"]["group"] != spec["group"]:
            continue
        taken = (other.get("status") or {}).get("acceptedNames") or {}
        if names["kind"] == taken.get("kind") or names["kind"] == taken.get("listKind"):
            return "KindConflict", f'"{names["kind"]}" is already in use'
        if names["listKind"] in (taken.get("kind"), taken.get("listKind")):
            return "ListKindConflict", f'"{names["listKind"]}" is already in use'
        plurals = {taken.get("plural"), taken.get("singular"), *(taken.get("shortNames") or ())}
        if names["singular"] in plurals:
            return "SingularConflict", f'"{names["singular"]}" is already in use'
        for short in names.get("shortNames") or ():
            if short in plurals:
                return "ShortNamesConflict", f'"{short}" is already in use'
    return None


# -- rules ------------------------------------------------------------------------------------------------------------


def check_definition(problems: ValidationProblems, doc: Doc) -> None:
    spec, name = doc.get("spec") or {}, doc["metadata"]["name"]
    names = spec.get("names") or {}
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if name != wanted:
        problems.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    _check_group(problems, doc, spec.get("group", ""))
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        if not spec.get("scope"):
            problems.required("spec.scope")
        else:
            problems.unsupported("spec.scope", spec["scope"], ["Cluster", "Namespaced"])
    _check_names(problems, names)
    _check_versions(problems, spec.get("versions") or [])
    strategy = (spec.get("conversion") or {}).get("strategy")
    if strategy != "None":
        problems.unsupported("spec.conversion.strategy", strategy, ["None"])


def check_definition_step(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    """What an established definition may not change."""
    versions = {version.get("name") for version in new["spec"].get("versions") or ()}
    for index, name in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if name not in versions:
            detail = "missing from spec.versions; must be removed from status.storedVersions after migrating objects"
            problems.invalid(f"status.storedVersions[{index}]", name, detail)
    for field in ("group", "scope"):
        if new["spec"].get(field) != old["spec"].get(field):
            problems.invalid(f"spec.{field}", new["spec"].get(field), "field is immutable")
    for field in ("plural", "kind"):
        if new["spec"]["names"].get(field) != old["spec"]["names"].get(field):
            problems.invalid(f"spec.names.{field}", new["spec"]["names"].get(field), "field is immutable")


def _check_group(problems: ValidationProblems, doc: Doc, group: str) -> None:
    if not group:
        problems.required("spec.group")
    elif "." not in group:
        problems.invalid("spec.group", group, "should be a domain with at least one dot")
    elif _is_protected(group) and not (doc["metadata"].get("annotations") or {}).get(_APPROVED):
        path = f"metadata.annotations[{_APPROVED}]"
        detail = f'protected groups must have approval annotation "{_APPROVED}", see '
        problems.required(path, detail + "https://github.com/kubernetes/enhancements/pull/1111")


def _is_protected(group: str) -> bool:
    return group.endswith((".k8s.io", ".kubernetes.io")) or group in ("k8s.io", "kubernetes.io")


def _check_names(problems: ValidationProblems, names: Doc) -> None:
    for field in ("plural", "singular", "kind", "listKind"):
        value = names.get(field) or ""
        if not value:
            problems.required(f"spec.names.{field}")
        elif not _LABEL.fullmatch(value.lower()) or len(value) > 63:
            problems.invalid(f"spec.names.{field}", value, _NO_LABEL)


def _check_versions(problems: ValidationProblems, versions: list[Doc]) -> None:
    if sum(bool(version.get("storage")) for version in versions) != 1:
        problems.invalid("spec.versions", versions, "must have exactly one version marked as storage version")
    seen: set[str] = set()
    for index, version in enumerate(versions):
        name = version.get("name", "")
        if name in seen:
            problems.duplicate(f"spec.versions[{index}].name", name)
        seen.add(name)
        if not _LABEL.fullmatch(name) or len(name) > _LONGEST_LABEL:
            problems.invalid(f"spec.versions[{index}].name", name, _TOO_LONG if _LABEL.fullmatch(name) else _NO_LABEL)
        single = len(versions) == 1
        path = "spec.validation.openAPIV3Schema" if single else f"spec.versions[{index}].schema.openAPIV3Schema"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            problems.required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")
        else:
            _check_schema(problems, path, schema)


def _check_inner_types(schema: Doc, depth: int = 0) -> None:
    """Schemas inside `items` and the like may be other things than schemas, so nobody has looked at their types yet."""
    if depth > _DEEPEST:
        raise BadRequest("the schema is nested too deeply")
    for name in ("items", "additionalProperties"):
        inner = schema.get(name)
        if isinstance(inner, dict):
            _check_inner_types(decode_as(_SCHEMA_TYPE, CUSTOM_RESOURCE_DEFINITION, inner), depth + 1)
        elif inner is not None and not (name == "additionalProperties" and isinstance(inner, bool)):
            raise BadRequest(f"the schema's {name} must be a schema")
    for group in ((schema.get("properties") or {}).values(), *(schema.get(name) or () for name in _ALTERNATIVES)):
        for inner in group:
            _check_inner_types(inner, depth + 1)
    if "not" in schema:
        _check_inner_types(schema["not"], depth + 1)


def _check_schema(problems: ValidationProblems, path: str, schema: Doc) -> None:
    _check_inner_types(schema)
    if schema.get("type") != "object":
        if not schema.get("type"):
            problems.required(f"{path}.type", "must not be empty at the root")
        else:
            problems.invalid(f"{path}.type", schema["type"], "must be object at the root")
    before = len(problems.found)
    _check_structural(problems, path, schema, root=True)
    if len(problems.found) == before:
        check_rules(problems, path, schema)


def _check_structural(
    problems: ValidationProblems, path: str, schema: Any, *, root: bool = False, depth: int = 0
) -> None:
    if not isinstance(schema, dict) or depth > 200:
        return
    loose = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not schema.get("type") and not loose and not root:
        problems.required(
            f"{path}.type",
            "must not be empty for specified object fields"
            if "properties[" in path
            else "must not be empty for specified array items",
        )
    elif schema.get("type") and schema["type"] not in _TYPES:
        problems.unsupported(f"{path}.type", schema["type"], sorted(_TYPES))
    if schema.get("type") == "array" and "items" not in schema:
        problems.required(f"{path}.items", "must be specified")
    for name in ("uniqueItems", "definitions", "dependencies", "$ref", "patternProperties", "deprecated"):
        if schema.get(name):
            problems.forbidden(
                f"{path}.{name}",
                f"{name} cannot be set to true" if name == "uniqueItems" else f"{name} is not supported",
            )
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get("x-kubernetes-list-map-keys"):
        problems.required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    wanted = schema.get("pattern")
    if isinstance(wanted, str) and (fault := pattern_fault(wanted)):
        problems.invalid(f"{path}.pattern", wanted, f"must be a valid regular expression, but isn't: {fault}")
    for name, inner in (schema.get("properties") or {}).items():
        if not (root and name in ("apiVersion", "kind", "metadata")):
            _check_structural(problems, f"{path}.properties[{name}]", inner, depth=depth + 1)
    _check_structural(problems, f"{path}.items", schema.get("items"), depth=depth + 1)
    _check_structural(problems, f"{path}.additionalProperties", schema.get("additionalProperties"), depth=depth + 1)
