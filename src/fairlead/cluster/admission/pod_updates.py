"""The few changes that a pod's spec allows after its creation.

Images, a shorter deadline, more tolerations; while a pod is gated also a narrower node selection, and gates may go but
not come. Everything else is refused in one sentence. (The original adds a diff of its internal structs to that
sentence; we name the changed fields instead.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc

_SENTENCE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def check_pod_update(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    """From one spec to the next; both are defaulted."""
    if new == old:
        return
    for group in ("containers", "initContainers"):
        if len(new.get(group, ())) != len(old.get(group, ())):
            problems.forbidden(f"spec.{group}", "pod updates may not add or remove containers")
            return
    _check_deadline(problems, new, old)
    _check_tolerations(problems, new, old)
    _check_gates(problems, new, old)
    gated = bool(old.get("schedulingGates"))
    if gated:
        _check_node_selector(problems, new, old)
        _check_node_affinity(problems, new, old)
    changed = _changed(_comparable(new, gated=gated), _comparable(old, gated=gated))
    if changed:
        problems.forbidden("spec", f"{_SENTENCE}\n{_listed(changed, new, old)}")


def _check_deadline(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    before, after = old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    if before is not None and after is None:
        problems.invalid("spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value")
    elif before is not None and after is not None and after > before:
        problems.invalid("spec.activeDeadlineSeconds", after, f"must be less than or equal to previous value {before}")


def _check_tolerations(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    def bare(tolerations: list[Doc]) -> list[Doc]:
        return [{key: value for key, value in one.items() if key != "tolerationSeconds"} for one in tolerations]

    kept = bare(new.get("tolerations", []))
    if any(toleration not in kept for toleration in bare(old.get("tolerations", []))):
        problems.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _check_gates(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    present = {gate["name"] for gate in old.get("schedulingGates", ())}
    for index, gate in enumerate(new.get("schedulingGates", ())):
        if gate["name"] not in present:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            problems.forbidden(f"spec.schedulingGates[{index}].name", detail)


def _check_node_selector(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    after = new.get("nodeSelector", {})
    if any(after.get(key) != value for key, value in old.get("nodeSelector", {}).items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        problems.invalid("spec.nodeSelector", after, detail)


def _check_node_affinity(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    before = old.get("affinity", {}).get("nodeAffinity", {}).get(_REQUIRED)
    after = new.get("affinity", {}).get("nodeAffinity", {}).get(_REQUIRED)
    if before is None or before == after:
        return
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    old_terms, new_terms = before.get("nodeSelectorTerms", []), (after or {}).get("nodeSelectorTerms", [])
    if len(old_terms) != len(new_terms):
        problems.invalid(path, new_terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (one, other) in enumerate(zip(new_terms, old_terms, strict=True)):
        if not _only_adds(one, other):
            problems.invalid(f"{path}[{index}]", one, "only additions are allowed (no mutations or deletions)")


def _only_adds(new: Doc, old: Doc) -> bool:
    return all(
        new.get(field, [])[: len(old.get(field, []))] == old.get(field, [])
        for field in ("matchExpressions", "matchFields")
    )


def _comparable(spec: Doc, *, gated: bool) -> Doc:
    """The spec without what may change or was judged already."""
    out = {
        key: value
        for key, value in spec.items()
        if key not in ("activeDeadlineSeconds", "tolerations", "schedulingGates", "serviceAccount")
    }
    for group in ("containers", "initContainers"):
        if group in out:
            out[group] = [{key: value for key, value in one.items() if key != "image"} for one in out[group]]
    if out.get("terminationGracePeriodSeconds") == 1:
        out.pop("terminationGracePeriodSeconds")
    if gated:
        out.pop("nodeSelector", None)
        out["affinity"] = {k: v for k, v in out.get("affinity", {}).items() if k != "nodeAffinity"}
    return out


def _changed(new: Doc, old: Doc) -> list[str]:
    return sorted(key for key in {*new, *old} if new.get(key) != old.get(key))


def _listed(changed: list[str], new: Doc, old: Doc) -> str:
    return "".join(f"- {key}: {old.get(key)!r}\n+ {key}: {new.get(key)!r}\n" for key in changed)
