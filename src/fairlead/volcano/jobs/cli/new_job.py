"""Jobs that `fairlead job run` creates: read from files, or made of what was typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.config.yaml_text import read_documents
from fairlead.errors import ConfigError
from fairlead.volcano.kinds import VC_JOB

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc


def jobs_in(path: Path) -> list[Doc]:
    """The Volcano Jobs of a YAML or JSON file. Raises ConfigError that names the file and what is wrong in it."""
    documents = [one for one in read_documents(path) if one is not None]
    if not documents:
        raise ConfigError(f"{path}: no Job in there")
    for number, document in enumerate(documents, start=1):
        declared = (document.get("apiVersion"), document.get("kind")) if isinstance(document, dict) else (None, None)
        if declared != (VC_JOB.api_version, VC_JOB.kind):
            raise ConfigError(
                f"{path}: document {number} is {declared[1] or 'no object'} of {declared[0] or 'no apiVersion'}",
                hint=f"only {VC_JOB.kind} of {VC_JOB.api_version} can be run; kubectl apply takes the rest",
            )
    return documents


@dataclass(frozen=True, slots=True)
class NewJob:
    """A Job of one task, as it is asked for on the command line."""

    name: str
    image: str
    replicas: int
    minimum: int | None
    queue: str
    priority: str
    requests: Mapping[str, str]
    plugins: Sequence[str]
    command: Sequence[str]


def made_job(new: NewJob) -> Doc:
    """The Job, called as Volcano's own tool would call it."""
    container: Doc = {"name": new.name, "image": new.image, "imagePullPolicy": "IfNotPresent"}
    if new.requests:
        container["resources"] = {"requests": dict(new.requests)}
    if new.command:
        container["command"] = list(new.command)
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec: Doc = {
        "minAvailable": new.replicas if new.minimum is None else new.minimum,
        "schedulerName": "volcano",
        "queue": new.queue,
        "tasks": [{"name": "task", "replicas": new.replicas, "template": template}],
    }
    if new.priority:
        spec["priorityClassName"] = new.priority
    if new.plugins:
        spec["plugins"] = {plugin: [] for plugin in new.plugins}
    return {"apiVersion": VC_JOB.api_version, "kind": VC_JOB.kind, "metadata": {"name": new.name}, "spec": spec}


def amounts(text: str) -> dict[str, str]:
    """`cpu=1,memory=1Gi` as a mapping. Raises ConfigError."""
    found = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals or not name or not value:
            raise ConfigError(f'"{part}" is no amount', hint="write NAME=AMOUNT, as in cpu=1,memory=1Gi")
        found[name] = value
    return found
