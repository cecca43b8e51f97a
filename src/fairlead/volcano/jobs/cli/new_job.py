"""Jobs that `fairlead job run` creates: read from files, or made of what was typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.cluster.kubelets.pod_script import RUN_TIME
from fairlead.config.yaml_text import read_documents
from fairlead.core.model.durations import format_duration
from fairlead.core.model.quantity import is_extended
from fairlead.errors import ConfigError
from fairlead.volcano.jobs.cli.gpus import GPU
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
    """A Job of one task, as it is given on the command line. `run_time` is for simulated pods."""

    name: str
    image: str
    replicas: int
    minimum: int | None
    queue: str
    priority: str
    resources: Mapping[str, Mapping[str, str]]
    run_time: float | None
    plugins: Sequence[str]
    command: Sequence[str]


def made_job(new: NewJob) -> Doc:
    """The Job, called as Volcano's own tool would call it."""
    container: Doc = {"name": new.name, "image": new.image, "imagePullPolicy": "IfNotPresent"}
    if new.resources:
        container["resources"] = dict(new.resources)
    if new.command:
        container["command"] = list(new.command)
    template: Doc = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    if new.run_time is not None:
        template["metadata"] = {"annotations": {RUN_TIME: format_duration(new.run_time)}}
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


def resources_of(requests: Mapping[str, str], limits: Mapping[str, str], gpus: int) -> Mapping[str, Mapping[str, str]]:
    """The resources of a container. An extended resource cannot be shared, so its request and its limit are the same
    amount, and the API wants both: whichever is given stands for both. Raises ConfigError."""
    given = {GPU: str(gpus)} if gpus else {}
    extended = {**given, **_extended(limits), **_extended(requests)}
    for name in extended:
        said = {each[name] for each in (given, limits, requests) if name in each}
        if len(said) > 1:
            raise ConfigError(f"{name}: {' and '.join(sorted(said))} are asked for", hint=f"say {name} once")
    found = {"requests": {**requests, **extended}, "limits": {**limits, **extended}}
    return {part: named for part, named in found.items() if named}


def _extended(named: Mapping[str, str]) -> Mapping[str, str]:
    return {name: amount for name, amount in named.items() if is_extended(name)}


def amounts(text: str) -> dict[str, str]:
    """`cpu=1,memory=1Gi` as a mapping. Raises ConfigError."""
    found = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals or not name or not value:
            raise ConfigError(f'"{part}" is no amount', hint="write NAME=AMOUNT, as in cpu=1,memory=1Gi")
        found[name] = value
    return found
