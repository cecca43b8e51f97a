"""ElasticQuota: what a team may use at least (min) and at most (max), and how it shares what others leave.

Quotas form trees by the label that names the parent. Three names are built in: the root, the quota of system pods, and
the default one for pods that name none.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.core.model.documents import EMPTY, FieldError, compiler, read_units

PREFIX = "quota.scheduling.koordinator.sh/"
ROOT, SYSTEM, DEFAULT = "koordinator-root-quota", "koordinator-system-quota", "koordinator-default-quota"
BUILT_IN = frozenset({ROOT, SYSTEM, DEFAULT})
NAME_LABEL = PREFIX + "name"
PREEMPTIBLE_LABEL = PREFIX + "preemptible"
NAMESPACES_ANNOTATION = PREFIX + "namespaces"

SHOWN = (
    "request", "child-request", "runtime", "non-preemptible-request", "non-preemptible-used", "guaranteed", "allocated",
)  # fmt: skip
"""Annotations in which a scheduler writes what is requested, used and granted."""

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ElasticQuota:
    """Amounts in base units. `tree` is empty in the default tree; `total` is what a tree has, on its root quota.
    `namespaces` are those whose pods belong here without saying so."""

    name: str
    namespace: str
    parent: str
    is_parent: bool
    lends: bool
    max: Amounts
    min: Amounts
    weight: Amounts
    tree: str = ""
    is_tree_root: bool = False
    ignores_default_tree: bool = False
    total: Amounts | None = None
    namespaces: tuple[str, ...] = ()
    shown: Mapping[str, Amounts] = field(default_factory=dict, compare=False)
    """What the object shows of its use, by the names of annotations."""


def quotas_by_namespace(quotas: Iterable[ElasticQuota]) -> dict[str, str]:
    """The quota that lists a namespace, the first one if several do."""
    found: dict[str, str] = {}
    for quota in quotas:
        for namespace in quota.namespaces:
            found.setdefault(namespace, quota.name)
    return found


def quota_named_for(
    labels: Mapping[str, str],
    namespace: str,
    keys: Container[str],
    by_namespace: Mapping[str, str],
    *,
    no_default: bool = False,
) -> str:
    """The name of the quota that a pod belongs to: the one that its label names, then the one called like its namespace
    and in it, then the one that lists its namespace, then the default one. `keys` are those of all quotas; `no_default`
    lets only the label count."""
    named = labels.get(NAME_LABEL, "")
    if named or no_default:
        return named
    if f"{namespace}/{namespace}" in keys:
        return namespace
    return by_namespace.get(namespace, DEFAULT)


def quota_line(name: str, quotas: Mapping[str, ElasticQuota]) -> Iterator[ElasticQuota]:
    """A quota and those above it, up to the root, which is not among them."""
    seen: set[str] = set()
    while name in quotas and name != ROOT and name not in seen:
        seen.add(name)
        yield quotas[name]
        name = quotas[name].parent


@compiler("ElasticQuota")
def compile_elastic_quota(document: Mapping[str, Any]) -> ElasticQuota:
    metadata, spec = document["metadata"], document.get("spec") or {}
    labels, annotations = metadata.get("labels") or EMPTY, metadata.get("annotations") or EMPTY
    name = metadata["name"]
    most = read_units(spec.get("max"), "spec.max")
    weight = _amounts(annotations, PREFIX + "shared-weight")
    namespaces = _json(annotations, NAMESPACES_ANNOTATION)
    return ElasticQuota(
        name=name,
        namespace=metadata.get("namespace") or "",
        parent=labels.get(PREFIX + "parent") or ("" if name == ROOT else ROOT),
        is_parent=labels.get(PREFIX + "is-parent") == "true",
        lends=labels.get(PREFIX + "allow-lent-resource") != "false",
        max=most,
        min=read_units(spec.get("min"), "spec.min"),
        weight=weight if weight and any(weight.values()) else most,
        tree=labels.get(PREFIX + "tree-id") or "",
        is_tree_root=labels.get(PREFIX + "is-root") == "true",
        ignores_default_tree=labels.get(PREFIX + "ignore-default-tree") == "true",
        total=_amounts(annotations, PREFIX + "total-resource"),
        namespaces=tuple(namespaces) if isinstance(namespaces, list) else (),
        shown=_shown(annotations, document.get("status") or {}),
    )


def _shown(annotations: Mapping[str, str], status: Mapping[str, Any]) -> dict[str, Amounts]:
    found = {key: _amounts(annotations, PREFIX + key) for key in SHOWN}
    written = {key: amounts for key, amounts in found.items() if amounts is not None}
    return {**written, "used": read_units(status.get("used"), "status.used")}


def _json(annotations: Mapping[str, str], key: str) -> Any:
    text = annotations.get(key)
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise FieldError(f"metadata.annotations[{key}]", str(error)) from None


def _amounts(annotations: Mapping[str, str], key: str) -> Amounts | None:
    written = _json(annotations, key)
    return read_units(written, f"metadata.annotations[{key}]") if isinstance(written, dict) else None
