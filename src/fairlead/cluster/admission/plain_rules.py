"""Rules for all the kinds that neither are pods nor make any: what they need, and what may not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.names import config_key, dns_label, port_number
from fairlead.cluster.admission.nodes import check_node, check_node_update
from fairlead.cluster.admission.problems import IMMUTABLE
from fairlead.cluster.admission.resources import check_amount
from fairlead.cluster.admission.selectors import check_label_selector
from fairlead.cluster.store.quantities import amount
from fairlead.core.model import kinds as k
from fairlead.core.model.priorities import HIGHEST_PRIORITY, SYSTEM_PRIORITIES

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

Rule = Callable[["ValidationProblems", "Doc"], None]
Step = Callable[["ValidationProblems", "Doc", "Doc"], None]

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _config(problems: ValidationProblems, doc: Doc) -> None:
    for section in ("data", "binaryData"):
        for key in doc.get(section, {}):
            problems.each_invalid(f"{section}[{key}]", key, config_key(key))


def _service(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc.get("spec", {})
    ports = spec.get("ports", ())
    kinds = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
    if spec.get("type") not in kinds:
        problems.unsupported("spec.type", spec.get("type"), kinds)
        return
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        if len(ports) > 1 and not port.get("name"):
            problems.required(f"{path}.name")
        problems.each_invalid(f"{path}.port", port.get("port", 0), port_number(port.get("port", 0)))
        target = port.get("targetPort", 0)
        if isinstance(target, int):
            problems.each_invalid(f"{path}.targetPort", target, port_number(target))


_NOT_SOURCES = frozenset({
    "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
    "storageClassName", "volumeAttributesClassName", "volumeMode",
})  # fmt: skip


def _volume(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc.get("spec", {})
    _check_access_modes(problems, spec, "")
    capacity = spec.get("capacity")
    if not capacity:
        problems.required("spec.capacity")
    if not capacity or set(capacity) != {"storage"}:
        problems.unsupported("spec.capacity", capacity, ("storage",))
    if not spec.keys() - _NOT_SOURCES:
        problems.required("spec", "must specify a volume type")


def _claim(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc.get("spec", {})
    _check_access_modes(problems, spec, "at least 1 access mode is required")
    storage = spec.get("resources", {}).get("requests", {}).get("storage")
    if storage is None:
        problems.required("spec.resources[storage]")
    elif amount(storage) <= 0:
        problems.invalid("spec.resources[storage]", storage, "must be greater than zero")


def _check_access_modes(problems: ValidationProblems, spec: Doc, detail: str) -> None:
    if not spec.get("accessModes"):
        problems.required("spec.accessModes", detail)
    for mode in spec.get("accessModes", ()):
        problems.not_one_of("spec.accessModes", mode, _ACCESS_MODES)


_QUOTA = frozenset({
    "cpu", "memory", "storage", "ephemeral-storage", "pods", "services", "replicationcontrollers", "resourcequotas",
    "secrets", "configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
})  # fmt: skip


def _quota(problems: ValidationProblems, doc: Doc) -> None:
    for name, value in doc.get("spec", {}).get("hard", {}).items():
        path = f"spec.hard[{name}]"
        if "/" not in name and name not in _QUOTA and not name.startswith(("requests.", "limits.", "hugepages-")):
            problems.invalid(path, name, "must be a standard resource type or fully qualified")
            problems.invalid(path, name, "must be a standard resource for quota")
        check_amount(problems, path, name, value)


def _budget(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc.get("spec", {})
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        whole = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        problems.invalid_as_is("spec", whole, "minAvailable and maxUnavailable cannot be both set")
    for field, value in (("minAvailable", least), ("maxUnavailable", most)):
        _check_count_or_share(problems, f"spec.{field}", value)
    if "selector" in spec:
        check_label_selector(problems, "spec.selector", spec["selector"])


def _check_count_or_share(problems: ValidationProblems, path: str, value: Any) -> None:
    if isinstance(value, str):
        if value.endswith("%") and value[:-1].isdigit() and int(value[:-1]) > 100:
            problems.invalid(path, value, "must not be greater than 100%")
    else:
        problems.negative(path, value)


def _priority_class(problems: ValidationProblems, doc: Doc) -> None:
    name, value = doc["metadata"]["name"], doc.get("value", 0)
    if name.startswith("system-"):
        if name not in SYSTEM_PRIORITIES:
            problems.forbidden(
                "metadata.name",
                (
                    "priority class names with 'system-' prefix are reserved for system use only. "
                    f"error: {name} is not a known system priority class"
                ),
            )
    elif value > HIGHEST_PRIORITY:
        problems.forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}")
    problems.not_one_of("preemptionPolicy", doc.get("preemptionPolicy"), ("PreemptLowerPriority", "Never"))


def _runtime_class(problems: ValidationProblems, doc: Doc) -> None:
    problems.each_invalid("handler", doc.get("handler", ""), dns_label(doc.get("handler", "")))


def _lease(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc.get("spec", {})
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        problems.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    problems.negative("spec.leaseTransitions", spec.get("leaseTransitions"))


def _storage_class(problems: ValidationProblems, doc: Doc) -> None:
    if not doc.get("provisioner"):
        problems.required("provisioner")
    problems.not_one_of("reclaimPolicy", doc.get("reclaimPolicy"), ("Delete", "Retain"))
    problems.not_one_of("volumeBindingMode", doc.get("volumeBindingMode"), ("Immediate", "WaitForFirstConsumer"))


def _revision(problems: ValidationProblems, doc: Doc) -> None:
    if "data" not in doc:
        problems.required("data", "data is mandatory")


PLAIN_RULES: dict[Kind, Rule] = {
    k.NODE: check_node,
    k.CONFIG_MAP: _config,
    k.SECRET: _config,
    k.SERVICE: _service,
    k.PERSISTENT_VOLUME: _volume,
    k.PERSISTENT_VOLUME_CLAIM: _claim,
    k.RESOURCE_QUOTA: _quota,
    k.POD_DISRUPTION_BUDGET: _budget,
    k.PRIORITY_CLASS: _priority_class,
    k.RUNTIME_CLASS: _runtime_class,
    k.LEASE: _lease,
    k.STORAGE_CLASS: _storage_class,
    k.CONTROLLER_REVISION: _revision,
}

# -- from one state to the next ---------------------------------------------------------------------------------------


def _fixed(*fields: str) -> Step:
    def check(problems: ValidationProblems, new: Doc, old: Doc) -> None:
        for field in fields:
            if new.get(field) != old.get(field):
                problems.invalid(field, new.get(field), IMMUTABLE)

    return check


def _priority_class_stays(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    if new.get("value", 0) != old.get("value", 0):
        problems.forbidden("value", "may not be changed in an update.")
    _fixed("preemptionPolicy")(problems, new, old)


def _frozen_when_said(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    if not old.get("immutable"):
        return
    for field in ("immutable", "data", "binaryData"):
        if new.get(field) != old.get(field):
            problems.forbidden(field, "field is immutable when `immutable` is set")


def _secret_stays(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    _fixed("type")(problems, new, old)
    _frozen_when_said(problems, new, old)


def _volume_stays(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    def source(doc: Doc) -> Doc:
        return {key: value for key, value in doc.get("spec", {}).items() if key not in _NOT_SOURCES}

    if source(new) != source(old):
        path = "spec.persistentvolumesource"
        problems.forbidden(path, f"{path} is immutable after creation\n")


def _claim_stays(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    def rest(doc: Doc) -> Doc:
        free = {"resources", "volumeAttributesClassName"}
        if not old.get("spec", {}).get("volumeName"):
            free |= {"volumeName"}
        if not old.get("spec", {}).get("storageClassName"):
            free |= {"storageClassName"}
        return {key: value for key, value in doc.get("spec", {}).items() if key not in free}

    if rest(new) != rest(old):
        problems.forbidden(
            "spec",
            (
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
                "claims\n"
            ),
        )


def _service_stays(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    before, after = old.get("spec", {}).get("clusterIP"), new.get("spec", {}).get("clusterIP")
    if before and after and before != after and new["spec"].get("type") != "ExternalName":
        problems.invalid("spec.clusterIPs[0]", new["spec"].get("clusterIPs", [after]), "may not change once set")


PLAIN_STEPS: dict[Kind, Step] = {
    k.NODE: check_node_update,
    k.PRIORITY_CLASS: _priority_class_stays,
    k.CONFIG_MAP: _frozen_when_said,
    k.SECRET: _secret_stays,
    k.PERSISTENT_VOLUME: _volume_stays,
    k.PERSISTENT_VOLUME_CLAIM: _claim_stays,
    k.STORAGE_CLASS: _fixed("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
    k.RUNTIME_CLASS: _fixed("handler"),
    k.SERVICE: _service_stays,
}


def check_namespace_status(problems: ValidationProblems, doc: Doc) -> None:
    phase = doc.get("status", {}).get("phase")
    if phase == "Terminating" and "deletionTimestamp" not in doc["metadata"]:
        problems.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")
