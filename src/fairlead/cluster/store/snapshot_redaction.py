"""What is taken out of a document before it is given to others: what scheduling does not read and may be private.

Gone are the values of environment variables, commands, arguments, probes and hooks of containers (wherever a pod
template stands), messages of ended containers, and all annotations but those that schedulers, kubelets and controllers
read. Names, labels, requests, places and times stay: without them nothing could be learned from the rest. Registries
of images are replaced on request, the same way everywhere, so that nodes still have the images that pods want.

Unlike redaction.py, which makes reports to be read, this leaves documents that a cluster can go on from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.core.family import families

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

REDACTED = "redacted"
REGISTRY = "registry.example"
KEPT_PREFIXES = (
    "scheduling.",
    "scheduler.",
    "batch.kubernetes.io/",
    "pv.kubernetes.io/",
    "deployment.kubernetes.io/",
    "volume.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "storageclass.kubernetes.io/",
    "controller.kubernetes.io/",
    "cluster-autoscaler.kubernetes.io/",
    "storage.alpha.kubernetes.io/",
    "fairlead.io/",
    "kwok.x-k8s.io/",
    "deprecated.daemonset.template.generation",
    "kubernetes.io/config.source",
    "kubernetes.io/config.mirror",
    "descheduler.alpha.kubernetes.io/",
    "karpenter.sh/",
    *(prefix for family in families() for prefix in family.kept_annotations),
)
"""What annotations begin with that somebody schedules by."""
_OF_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_DROPPED = ("command", "args", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "workingDir")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def redacted(doc: Doc, *, images: bool = False) -> Doc:
    """A copy without what may be private; with `images` also without the names of registries."""
    result: Doc = _walk(doc, images)
    return result


def _walk(value: Any, images: bool) -> Any:
    if isinstance(value, list):
        return [_walk(one, images) for one in value]
    if not isinstance(value, dict):
        return value
    out: dict[str, Any] = {}
    for key, inner in value.items():
        if key in _OF_CONTAINERS and isinstance(inner, list):
            out[key] = [_container(one, images) for one in inner]
        elif key in _STATUSES and isinstance(inner, list):
            out[key] = [_without_messages(one, images) for one in inner]
        elif key == "annotations" and isinstance(inner, dict):
            if kept := {name: text for name, text in inner.items() if name.startswith(KEPT_PREFIXES)}:
                out[key] = kept
        elif key == "images" and images and isinstance(inner, list):
            out[key] = [_image_entry(one) for one in inner]
        else:
            out[key] = _walk(inner, images)
    return out


def _container(container: Any, images: bool) -> Any:
    if not isinstance(container, dict):
        return container
    out = {key: value for key, value in container.items() if key not in _DROPPED}
    if isinstance(out.get("env"), list):
        out["env"] = [_variable(one) for one in out["env"]]
    if images and isinstance(out.get("image"), str):
        out["image"] = _elsewhere(out["image"])
    return out


def _variable(variable: Any) -> Any:
    if isinstance(variable, dict) and variable.get("value"):
        return {**variable, "value": REDACTED}
    return variable


def _without_messages(value: Any, images: bool) -> Any:
    if isinstance(value, list):
        return [_without_messages(one, images) for one in value]
    if not isinstance(value, dict):
        return value
    out = {key: _without_messages(inner, images) for key, inner in value.items() if key != "message"}
    for key in ("image", "imageID"):
        if images and isinstance(out.get(key), str):
            out[key] = _elsewhere(out[key])
    return out


def _image_entry(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    return {**entry, "names": [_elsewhere(name) for name in entry.get("names") or ()]}


def _elsewhere(image: str) -> str:
    """The same image in a registry of no name; an image without a registry stays as it is."""
    host, slash, rest = image.partition("/")
    is_registry = bool(slash) and ("." in host or ":" in host or host == "localhost")
    return f"{REGISTRY}/{rest}" if is_registry else image
