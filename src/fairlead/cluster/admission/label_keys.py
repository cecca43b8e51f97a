"""matchLabelKeys and mismatchLabelKeys: a new pod's own label values become part of its selectors.

The server writes them into the selector once, at creation, so that everybody later reads one plain selector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def bake_label_keys(spec: Doc, labels: dict[str, str]) -> Doc:
    """The spec with the keys written into its selectors."""
    out = dict(spec)
    if "topologySpreadConstraints" in out:
        out["topologySpreadConstraints"] = [_baked(one, labels) for one in out["topologySpreadConstraints"]]
    if "affinity" in out:
        out["affinity"] = {
            part: _baked_affinity(value, labels) if part in ("podAffinity", "podAntiAffinity") else value
            for part, value in out["affinity"].items()
        }
    return out


def _baked_affinity(affinity: Doc, labels: dict[str, str]) -> Doc:
    out = dict(affinity)
    if _REQUIRED in out:
        out[_REQUIRED] = [_baked(term, labels) for term in out[_REQUIRED]]
    if _PREFERRED in out:
        out[_PREFERRED] = [
            {**one, "podAffinityTerm": _baked(one["podAffinityTerm"], labels)} for one in out[_PREFERRED]
        ]
    return out


def _baked(term: Doc, labels: dict[str, str]) -> Doc:
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field, ())
        if key in labels
    ]
    if not added or "labelSelector" not in term:
        return term
    selector = term["labelSelector"]
    expressions = [*selector.get("matchExpressions", ()), *added]
    return {**term, "labelSelector": {**selector, "matchExpressions": expressions}}
