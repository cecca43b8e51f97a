"""Rules for metadata: names by kind, labels, annotations, owners and finalizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from fairlead.cluster.admission.names import dns_label, dns_subdomain, label_value, path_segment, qualified_name
from fairlead.core.model import kinds as k

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_NAMED_BY_LABEL = frozenset({k.NAMESPACE, k.STATEFUL_SET, k.SERVICE})
_FREELY_NAMED = frozenset({k.ROLE, k.ROLE_BINDING, k.CLUSTER_ROLE, k.CLUSTER_ROLE_BINDING})
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_ANNOTATIONS_LIMIT = 256 * 1024


def check_metadata(problems: ValidationProblems, kind: Kind, metadata: Doc) -> None:
    _check_name(problems, kind, metadata.get("name") or metadata.get("generateName", ""))
    if "labels" in metadata:
        check_labels(problems, "metadata.labels", metadata["labels"])
    if "annotations" in metadata:
        _check_annotations(problems, metadata["annotations"])
    for owner in metadata.get("ownerReferences", ()):
        _check_owner(problems, owner)
    for index, finalizer in enumerate(metadata.get("finalizers", ())):
        _check_finalizer(problems, f"metadata.finalizers[{index}]", finalizer)


def _check_name(problems: ValidationProblems, kind: Kind, name: str) -> None:
    if kind in _FREELY_NAMED:
        complaints = path_segment(name)
    elif kind is k.NAMESPACE and "." in name:
        complaints = ("must not contain dots",)
    else:
        complaints = dns_label(name) if kind in _NAMED_BY_LABEL else dns_subdomain(name)
    if complaints:
        problems.each_invalid("metadata.name", name, complaints)


def check_labels(problems: ValidationProblems, path: str, labels: Mapping[str, str]) -> None:
    for key, value in labels.items():
        if complaints := qualified_name(key):
            problems.each_invalid(path, key, complaints)
        if complaints := label_value(value):
            problems.each_invalid(path, value, complaints)


def _check_annotations(problems: ValidationProblems, annotations: Mapping[str, str]) -> None:
    bad, size = _keys_of_annotations(tuple(annotations))
    for key, complaints in bad:
        problems.each_invalid("metadata.annotations", key, complaints)
    for value in annotations.values():
        size += len(value)
    if size > _ANNOTATIONS_LIMIT:
        problems.too_long("metadata.annotations", _ANNOTATIONS_LIMIT)


@lru_cache(maxsize=1024)
def _keys_of_annotations(keys: tuple[str, ...]) -> tuple[Sequence[tuple[str, tuple[str, ...]]], int]:
    """What is wrong with each key, and how long all are together. Most pods have the keys of many others."""
    bad = [(key, complaints) for key in keys if (complaints := qualified_name(key.lower()))]
    return bad, sum(map(len, keys))


def _check_owner(problems: ValidationProblems, owner: Doc) -> None:
    path = "metadata.ownerReferences"
    if not owner.get("apiVersion"):
        problems.invalid(f"{path}.apiVersion", owner.get("apiVersion", ""), "version must not be empty")
    for field in ("kind", "name", "uid"):
        if not owner.get(field):
            problems.invalid(f"{path}.{field}", owner.get(field, ""), "must not be empty")


def _check_finalizer(problems: ValidationProblems, path: str, finalizer: str) -> None:
    complaints = qualified_name(finalizer)
    problems.each_invalid(path, finalizer, complaints)
    if not complaints and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        problems.invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified")


_FIXED = ("name", "namespace", "uid", "creationTimestamp")


def check_metadata_update(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    for field in _FIXED:
        if field in old and new.get(field) != old[field]:
            problems.invalid(f"metadata.{field}", new.get(field, ""), "field is immutable")
