"""Defaults of pods and pod templates: what the API server writes into every spec that does not say otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_MODE = 0o644


def default_pod_spec(spec: Doc, *, template: bool = False) -> Doc:
    """The spec with all defaults. Templates get no defaults that depend on the pod being one."""
    out = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        **spec,
    }
    if not template:
        out.setdefault("enableServiceLinks", True)
    if out["terminationGracePeriodSeconds"] < 0:
        out["terminationGracePeriodSeconds"] = 1
    _mirror_service_account(out)
    host_network = not template and bool(out.get("hostNetwork"))
    for group in ("containers", "initContainers", "ephemeralContainers"):
        if group in out:
            out[group] = [default_container(c, template=template, host_network=host_network) for c in out[group]]
    if "volumes" in out:
        out["volumes"] = [_default_volume(volume) for volume in out["volumes"]]
    if "resources" in out and not template:
        out["resources"] = _requests_from_limits(out["resources"])
    return out


def _mirror_service_account(spec: Doc) -> None:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def default_container(container: Doc, *, template: bool, host_network: bool) -> Doc:
    out = {
        "imagePullPolicy": pull_policy(container.get("image", "")),
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **container,
    }
    if not template:
        out["resources"] = _requests_from_limits(out["resources"])
    if "ports" in out:
        out["ports"] = [_default_port(port, host_network=host_network) for port in out["ports"]]
    if "env" in out:
        out["env"] = [_default_variable(variable) for variable in out["env"]]
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in out:
            out[probe] = _default_probe(out[probe])
    if "lifecycle" in out:
        out["lifecycle"] = {
            hook: _default_handler(action) if isinstance(action, dict) else action
            for hook, action in out["lifecycle"].items()
        }
    return out


def pull_policy(image: str) -> str:
    """Always for the tag `latest`, said or meant; a digest never moves."""
    if not image or image != image.strip() or "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2] or "latest"
    return "Always" if tag == "latest" else "IfNotPresent"


def _requests_from_limits(resources: Doc) -> Doc:
    limits = resources.get("limits")
    if not limits:
        return resources
    return {**resources, "requests": {**limits, **resources.get("requests", {})}}


def _default_port(port: Doc, *, host_network: bool) -> Doc:
    out = {"protocol": "TCP", **port}
    if host_network and not out.get("hostPort") and out.get("containerPort"):
        out["hostPort"] = out["containerPort"]
    return out


def _default_variable(variable: Doc) -> Doc:
    source = variable.get("valueFrom")
    if not source or "fieldRef" not in source:
        return variable
    return {**variable, "valueFrom": {**source, "fieldRef": {"apiVersion": "v1", **source["fieldRef"]}}}


def _default_probe(probe: Doc) -> Doc:
    counts = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    return _default_handler({**counts, **probe})


def _default_handler(handler: Doc) -> Doc:
    out = dict(handler)
    if "httpGet" in out:
        out["httpGet"] = {"path": "/", "scheme": "HTTP", **out["httpGet"]}
    if "grpc" in out:
        out["grpc"] = {"service": "", **out["grpc"]}
    return out


_MODED = ("secret", "configMap", "downwardAPI", "projected")


def _default_volume(volume: Doc) -> Doc:
    if len(volume) <= 1:
        return {**volume, "emptyDir": {}}
    out = dict(volume)
    for source in _MODED:
        if source in out:
            out[source] = {"defaultMode": _MODE, **out[source]}
    if "hostPath" in out:
        out["hostPath"] = {"type": "", **out["hostPath"]}
    if "downwardAPI" in out:
        out["downwardAPI"] = _default_items(out["downwardAPI"])
    if "projected" in out and "sources" in out["projected"]:
        out["projected"] = {**out["projected"], "sources": [_default_source(s) for s in out["projected"]["sources"]]}
    if "ephemeral" in out and "volumeClaimTemplate" in out["ephemeral"]:
        out["ephemeral"] = {**out["ephemeral"], "volumeClaimTemplate": _default_claim(out["ephemeral"])}
    return out


def _default_items(source: Doc) -> Doc:
    items = [
        {**item, "fieldRef": {"apiVersion": "v1", **item["fieldRef"]}} if "fieldRef" in item else item
        for item in source.get("items", ())
    ]
    return {**source, "items": items} if items else source


def _default_source(source: Doc) -> Doc:
    out = dict(source)
    if "serviceAccountToken" in out:
        out["serviceAccountToken"] = {"expirationSeconds": 3600, **out["serviceAccountToken"]}
    if "downwardAPI" in out:
        out["downwardAPI"] = _default_items(out["downwardAPI"])
    return out


def _default_claim(ephemeral: Doc) -> Any:
    template = ephemeral["volumeClaimTemplate"]
    return {**template, "spec": {"volumeMode": "Filesystem", **template.get("spec", {})}}


def default_template(template: Doc) -> Doc:
    """A pod template with the defaults of its spec."""
    return {**template, "spec": default_pod_spec(template.get("spec", {}), template=True)}
