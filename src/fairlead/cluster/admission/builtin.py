"""The admission plugins that a cluster always has: Priority, DefaultTolerationSeconds, RuntimeClass, ServiceAccount,
DefaultStorageClass.

They look at other objects through the DocView and change a new pod's spec; what they refuse is Forbidden, in the
plugins' own words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.problems import forbidden
from fairlead.core.model.kinds import POD, PRIORITY_CLASS, RUNTIME_CLASS, STORAGE_CLASS
from fairlead.core.model.priorities import SYSTEM_PRIORITIES
from fairlead.core.model.storage import CLASS_ANNOTATION, default_storage_class

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.core.model.kinds import Kind

_PATIENCE = 300
_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit_pod(view: DocView, name: str, spec: Doc) -> Doc:
    """The spec after all of them. `spec` is a dict of the caller's own."""
    _set_priority(view, name, spec)
    default_tolerations(spec)
    if "runtimeClassName" in spec or "overhead" in spec:
        _apply_runtime_class(view, name, spec)
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    return spec


# -- DefaultStorageClass ----------------------------------------------------------------------------------------------


def with_default_class(view: DocView, claim: Doc) -> Doc:
    """A claim that names no class gets the default one, if there is one."""
    spec = claim.get("spec") or {}
    if "storageClassName" in spec or CLASS_ANNOTATION in (claim["metadata"].get("annotations") or {}):
        return claim
    default = default_storage_class(view.list(STORAGE_CLASS))
    return {**claim, "spec": {**spec, "storageClassName": default}} if default else claim


# -- Priority ---------------------------------------------------------------------------------------------------------


def _set_priority(view: DocView, name: str, spec: Doc) -> None:
    value, policy = priority_of(view, POD, name, spec)
    given = spec.get("priority")
    if given is not None and given != value:
        raise forbidden(
            POD,
            name,
            (
                f"the integer value of priority ({given}) must not be provided in pod spec; priority admission "
                f"controller computed {value} from the given PriorityClass name"
            ),
        )
    wanted = spec.get("preemptionPolicy")
    if wanted is not None and wanted != policy:
        raise forbidden(
            POD,
            name,
            (
                f"the string value of PreemptionPolicy ({wanted}) must not be provided in pod spec; priority admission "
                f"controller computed {policy} from the given PriorityClass name"
            ),
        )
    spec["priority"], spec["preemptionPolicy"] = value, policy


def priority_in(view: DocView, name: str, spec: Doc) -> tuple[int, str, str]:
    """Priority, preemption policy and class that a pod with this spec gets now."""
    class_name = spec.get("priorityClassName")
    if not class_name:
        default = _default_class(view)
        if default is None:
            return 0, "PreemptLowerPriority", ""
        class_name = default["metadata"]["name"]
        return *_value_and_policy(default), class_name
    return *priority_of(view, POD, name, spec), class_name


def priority_of(view: DocView, kind: Kind, name: str, spec: Doc) -> tuple[int, str]:
    """Priority and preemption policy by the class that a spec names, or by the default class, which is put into it."""
    class_name = spec.get("priorityClassName")
    if class_name:
        found = view.get(PRIORITY_CLASS, "", class_name)
        if found is None and class_name not in SYSTEM_PRIORITIES:
            raise forbidden(kind, name, f"no PriorityClass with name {class_name} was found")
        return _value_and_policy(found or {"value": SYSTEM_PRIORITIES[class_name]})
    default = _default_class(view)
    if default is None:
        return 0, "PreemptLowerPriority"
    spec["priorityClassName"] = default["metadata"]["name"]
    return _value_and_policy(default)


def _value_and_policy(found: Doc) -> tuple[int, str]:
    return found.get("value", 0), found.get("preemptionPolicy", "PreemptLowerPriority")


def _default_class(view: DocView) -> Doc | None:
    defaults = [found for found in view.list(PRIORITY_CLASS) if found.get("globalDefault")]
    return min(defaults, key=lambda found: found.get("value", 0)) if defaults else None


# -- DefaultTolerationSeconds -----------------------------------------------------------------------------------------


def default_tolerations(spec: Doc) -> None:
    """Five minutes of patience with a node that is not ready or cannot be reached, unless the pod says otherwise."""
    tolerations: list[Any] = spec.get("tolerations", [])
    missing = [key for key in _LOST if not (tolerations and any(_covers(one, key) for one in tolerations))]
    if missing:
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _PATIENCE} for key in missing
        ]
        spec["tolerations"] = [*tolerations, *added]


def _covers(toleration: Doc, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")


# -- RuntimeClass -----------------------------------------------------------------------------------------------------


def _apply_runtime_class(view: DocView, name: str, spec: Doc) -> None:
    class_name = spec.get("runtimeClassName")
    found = view.get(RUNTIME_CLASS, "", class_name) if class_name else {}
    if found is None:
        raise forbidden(POD, name, f'pod rejected: RuntimeClass "{class_name}" not found')
    _set_overhead(name, spec, found.get("overhead", {}).get("podFixed"))
    scheduling = found.get("scheduling", {})
    _merge_node_selector(name, spec, scheduling.get("nodeSelector", {}))
    present = spec.get("tolerations", [])
    fresh = [toleration for toleration in scheduling.get("tolerations", ()) if toleration not in present]
    if fresh:
        spec["tolerations"] = [*present, *fresh]


def _set_overhead(name: str, spec: Doc, overhead: Doc | None) -> None:
    given = spec.get("overhead")
    if overhead is None:
        if given:
            raise forbidden(
                POD, name, ("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
            )
        return
    if given and given != overhead:
        raise forbidden(POD, name, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    spec["overhead"] = overhead


def _merge_node_selector(name: str, spec: Doc, wanted: dict[str, str]) -> None:
    if not wanted:
        return
    present = spec.get("nodeSelector", {})
    for key, value in wanted.items():
        if key in present and present[key] != value:
            raise forbidden(
                POD,
                name,
                (
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {present[key]}"
                ),
            )
    spec["nodeSelector"] = {**present, **wanted}
