"""Pods: the rules for a spec, for a pod as a whole, and for the few changes that a pod allows."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from fairlead.cluster.admission import scheduling
from fairlead.cluster.admission.containers import PodScope, check_container
from fairlead.cluster.admission.metadata import check_labels
from fairlead.cluster.admission.names import dns_label, dns_subdomain, qualified_name
from fairlead.cluster.admission.resources import check_requirements
from fairlead.cluster.admission.volumes import check_volumes

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc

_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_UID_RANGE = "must be between 0 and 2147483647, inclusive"


def check_pod_spec(problems: ValidationProblems, path: str, spec: Doc) -> None:
    """The rules that need nothing but the spec, which is already defaulted."""
    if "volumes" in spec:
        check_volumes(problems, f"{path}.volumes", spec["volumes"])
    if "resourceClaims" in spec:
        scheduling.check_claims(problems, f"{path}.resourceClaims", spec["resourceClaims"])
    _check_containers(problems, path, spec)
    if spec.get("resources"):
        check_requirements(problems, f"{path}.resources", spec["resources"])
    if spec.get("restartPolicy") not in _RESTART:
        problems.unsupported(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART)
    if spec.get("dnsPolicy") not in _DNS:
        problems.unsupported(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS)
    if "nodeSelector" in spec:
        check_labels(problems, f"{path}.nodeSelector", spec["nodeSelector"])
    if spec.get("securityContext"):
        _check_security(problems, f"{path}.securityContext", spec["securityContext"])
    if "affinity" in spec:
        scheduling.check_affinity(problems, f"{path}.affinity", spec["affinity"])
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig", {}).get("nameservers"):
        _complain_of_dns(problems, path, spec)
    for index, gate in enumerate(spec.get("readinessGates", ())):
        condition = gate.get("conditionType", "")
        problems.each_invalid(f"{path}.readinessGates[{index}].conditionType", condition, qualified_name(condition))
    if "topologySpreadConstraints" in spec:
        scheduling.check_spreading(problems, f"{path}.topologySpreadConstraints", spec["topologySpreadConstraints"])
    if "schedulingGates" in spec:
        scheduling.check_gates(problems, f"{path}.schedulingGates", spec["schedulingGates"])
    _check_names(problems, path, spec)
    if "tolerations" in spec:
        scheduling.check_tolerations(problems, f"{path}.tolerations", spec["tolerations"])
    _check_the_rest(problems, path, spec)


def _check_containers(problems: ValidationProblems, path: str, spec: Doc) -> None:
    scope = PodScope(
        volumes=_names(spec, "volumes"),
        claims=_names(spec, "resourceClaims"),
        host_network=bool(spec.get("hostNetwork")),
        restart_policy=spec.get("restartPolicy", ""),
    )
    if not spec.get("containers"):
        problems.required(f"{path}.containers")
    for index, container in enumerate(spec.get("containers", ())):
        check_container(problems, f"{path}.containers[{index}]", container, scope)
    for index, container in enumerate(spec.get("initContainers", ())):
        scope.host_ports = set()
        check_container(problems, f"{path}.initContainers[{index}]", container, scope, init=True)


def _names(spec: Doc, field: str) -> tuple[str, ...]:
    return tuple([one.get("name", "") for one in spec[field]]) if field in spec else ()


def _check_security(problems: ValidationProblems, path: str, context: Doc) -> None:
    for field in ("runAsUser", "runAsGroup", "fsGroup"):
        value = context.get(field)
        if value is not None and not 0 <= value <= 2147483647:
            problems.invalid(f"{path}.{field}", value, _UID_RANGE)


def _complain_of_dns(problems: ValidationProblems, path: str, spec: Doc) -> None:
    if "dnsConfig" not in spec:
        problems.required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    else:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        problems.required(f"{path}.dnsConfig.nameservers", detail)


def _check_names(problems: ValidationProblems, path: str, spec: Doc) -> None:
    for field in ("serviceAccountName", "nodeName"):
        if value := spec.get(field):
            problems.each_invalid(f"{path}.{field}", value, dns_subdomain(value))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2147483647:
        problems.invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    for field in ("hostname", "subdomain"):
        if value := spec.get(field):
            problems.each_invalid(f"{path}.{field}", value, dns_label(value))


def _check_the_rest(problems: ValidationProblems, path: str, spec: Doc) -> None:
    for index, alias in enumerate(spec.get("hostAliases", ())):
        if not _is_address(alias.get("ip", "")):
            detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            problems.invalid(f"{path}.hostAliases[{index}].ip", alias.get("ip", ""), detail)
    if name := spec.get("priorityClassName"):
        problems.each_invalid(f"{path}.priorityClassName", name, dns_subdomain(name))
    if "os" in spec:
        problems.not_one_of(f"{path}.os", spec["os"].get("name", ""), ("linux", "windows"))
    if "schedulingGroup" in spec:
        group = spec["schedulingGroup"].get("podGroupName", "")
        problems.each_invalid(f"{path}.schedulingGroup.podGroupName", group, dns_subdomain(group))


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def check_new_pod(problems: ValidationProblems, spec: Doc) -> None:
    """What only a new pod may not say."""
    if spec.get("ephemeralContainers"):
        problems.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("schedulingGates") and spec.get("nodeName"):
        problems.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
