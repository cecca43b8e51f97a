"""Rules for containers: names, images, ports, variables, mounts, probes, resources."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.cluster.admission import names
from fairlead.cluster.admission.resources import check_requirements

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_SOURCES = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_FIELD_PATHS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip


@dataclass(slots=True)
class PodScope:
    """What the containers of one pod share, and what they have taken so far."""

    volumes: tuple[str, ...]
    claims: tuple[str, ...]
    host_network: bool
    restart_policy: str
    container_names: set[str] = field(default_factory=set)
    host_ports: set[str] = field(default_factory=set)


def check_container(
    problems: ValidationProblems, path: str, container: Doc, scope: PodScope, *, init: bool = False
) -> None:
    _check_identity(problems, path, container, scope)
    if "lifecycle" in container:
        for hook in ("postStart", "preStop"):
            if hook in container["lifecycle"]:
                _check_handler(problems, f"{path}.lifecycle.{hook}", container["lifecycle"][hook])
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            _check_probe(problems, f"{path}.{probe}", container[probe])
    if container.get("imagePullPolicy") not in _PULL_POLICIES:
        problems.unsupported(f"{path}.imagePullPolicy", container.get("imagePullPolicy", ""), _PULL_POLICIES)
    if "ports" in container:
        _check_ports(problems, f"{path}.ports", container["ports"], scope)
    if "env" in container:
        for index, variable in enumerate(container["env"]):
            _check_variable(problems, f"{path}.env[{index}]", variable)
    if "volumeMounts" in container:
        _check_mounts(problems, f"{path}.volumeMounts", container["volumeMounts"], scope)
    if container.get("terminationMessagePolicy") not in _MESSAGE_POLICIES:
        policy = container.get("terminationMessagePolicy", "")
        problems.unsupported(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    if container.get("resources"):
        check_requirements(problems, f"{path}.resources", container["resources"], scope.claims)
    if init and container.get("restartPolicy") is not None:
        problems.not_one_of(f"{path}.restartPolicy", container["restartPolicy"], _RESTART_POLICIES)


def _check_identity(problems: ValidationProblems, path: str, container: Doc, scope: PodScope) -> None:
    name, image = container.get("name", ""), container.get("image", "")
    if not name:
        problems.required(f"{path}.name")
    elif complaints := names.dns_label(name):
        problems.each_invalid(f"{path}.name", name, complaints)
    elif name in scope.container_names:
        problems.duplicate(f"{path}.name", name)
    scope.container_names.add(name)
    if not image:
        problems.required(f"{path}.image")
    elif image != image.strip():
        problems.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


# -- ports ------------------------------------------------------------------------------------------------------------


def _check_ports(problems: ValidationProblems, path: str, ports: list[Doc], scope: PodScope) -> None:
    taken: set[str] = set()
    for index, port in enumerate(ports):
        here = f"{path}[{index}]"
        _check_port_name(problems, here, port.get("name", ""), taken)
        number = port.get("containerPort", 0)
        if not number:
            problems.required(f"{here}.containerPort")
        else:
            problems.each_invalid(f"{here}.containerPort", number, names.port_number(number))
        if host_port := port.get("hostPort", 0):
            _check_host_port(problems, here, port, host_port, scope)
        problems.not_one_of(f"{here}.protocol", port.get("protocol", ""), _PROTOCOLS)


def _check_port_name(problems: ValidationProblems, path: str, name: str, taken: set[str]) -> None:
    if not name:
        return
    if complaints := names.port_name(name):
        problems.each_invalid(f"{path}.name", name, complaints)
    elif name in taken:
        problems.duplicate(f"{path}.name", name)
    taken.add(name)


def _check_host_port(problems: ValidationProblems, path: str, port: Doc, number: int, scope: PodScope) -> None:
    problems.each_invalid(f"{path}.hostPort", number, names.port_number(number))
    if scope.host_network and number != port.get("containerPort"):
        problems.invalid(f"{path}.hostPort", number, "must match `containerPort` when `hostNetwork` is true")
    key = f"{port.get('protocol')}/{port.get('hostIP', '')}/{number}"
    if key in scope.host_ports:
        problems.duplicate(f"{path}.hostPort", key)
    scope.host_ports.add(key)


# -- variables and mounts ---------------------------------------------------------------------------------------------


def _check_variable(problems: ValidationProblems, path: str, variable: Doc) -> None:
    name = variable.get("name", "")
    if not name:
        problems.required(f"{path}.name")
    elif complaints := names.environment_name(name):
        problems.each_invalid(f"{path}.name", name, complaints)
    if "valueFrom" in variable:
        _check_source(problems, f"{path}.valueFrom", variable["valueFrom"], variable.get("value", ""))


def _check_source(problems: ValidationProblems, path: str, source: Doc, value: str) -> None:
    count = sum(1 for key in source if source[key])
    if "fieldRef" in source:
        _check_field_reference(problems, f"{path}.fieldRef", source["fieldRef"])
    for reference in ("configMapKeyRef", "secretKeyRef"):
        if reference in source and not source[reference].get("key"):
            problems.required(f"{path}.{reference}.key")
    if count == 0:
        problems.invalid(path, "", f"must specify one of: {_SOURCES}")
    elif value:
        problems.invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        problems.invalid(path, "", "may not have more than one field specified at a time")


def _check_field_reference(problems: ValidationProblems, path: str, reference: Doc) -> None:
    label = reference.get("fieldPath", "")
    known = label in _FIELD_PATHS or label.startswith(("metadata.labels['", "metadata.annotations['"))
    if not label:
        problems.required(f"{path}.fieldPath")
    elif not known:
        problems.invalid(f"{path}.fieldPath", label, f"error converting fieldPath: field label not supported: {label}")


def _check_mounts(problems: ValidationProblems, path: str, mounts: list[Doc], scope: PodScope) -> None:
    points: set[str] = set()
    for index, mount in enumerate(mounts):
        name, point, here = mount.get("name", ""), mount.get("mountPath", ""), f"{path}[{index}]"
        if not name:
            problems.required(f"{here}.name")
        if name not in scope.volumes:
            problems.not_found(f"{here}.name", name)
        if not point:
            problems.required(f"{here}.mountPath")
        if point in points:
            problems.invalid(f"{here}.mountPath", point, "must be unique")
        points.add(point)


# -- probes -----------------------------------------------------------------------------------------------------------


def _check_probe(problems: ValidationProblems, path: str, probe: Doc) -> None:
    _check_handler(problems, path, probe)
    for field_name in (
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ):
        problems.negative(f"{path}.{field_name}", probe.get(field_name))
    if path.endswith(("livenessProbe", "startupProbe")) and probe.get("successThreshold", 1) != 1:
        problems.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _check_handler(problems: ValidationProblems, path: str, handler: Doc) -> None:
    present = [name for name in _HANDLERS if name in handler] + (["sleep"] if "sleep" in handler else [])
    if not present:
        problems.required(path, "must specify a handler type")
    for extra in present[1:]:
        problems.forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")
    if "exec" in handler and not handler["exec"].get("command"):
        problems.required(f"{path}.exec.command")
    for network in ("httpGet", "tcpSocket", "grpc"):
        if network in handler:
            _check_port_reference(problems, f"{path}.{network}.port", handler[network].get("port", 0))


def _check_port_reference(problems: ValidationProblems, path: str, port: int | str) -> None:
    complaints = names.port_name(port) if isinstance(port, str) else names.port_number(port)
    problems.each_invalid(path, port, complaints)
