"""What a job plugin is: it adds to the pods of a Job, and may keep objects beside them.

A plugin is made for one Job with the arguments under its name in `spec.plugins`. It adds to pods before they are
created, and names the objects that shall be there while the Job has pods. The controller creates those objects when
the Job is taken in, refreshes them when the Job changes, and deletes them when the Job's pods are killed.

Invariant: a plugin reads the Job and returns documents; it performs nothing and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.cluster.controllers.writes import owner_reference
from fairlead.volcano.kinds import VC_JOB
from fairlead.volcano.records.keys import KeyPair, no_keys
from fairlead.volcano.records.quirks import FIXED, Quirks

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_MOST_TEXT = 1 << 20
"""Bytes that a ConfigMap or a Secret may hold; a pod cannot be much larger either."""


@dataclass(frozen=True, slots=True)
class PluginMeans:
    """What plugins are given beside their arguments: where keys come from, and which quirks are copied."""

    make_keys: Callable[[], KeyPair] = no_keys
    quirks: Quirks = FIXED


class Beside(NamedTuple):
    """An object that a plugin keeps beside a Job's pods."""

    kind: Kind
    doc: Doc


class JobPlugin:
    """Subclass it, override what you need, and name it as an entry point of the group `fairlead.job_plugins`."""

    name = ""
    marks_job = True
    """Whether the Job's status.controlledResources says that this plugin was run."""

    def __init__(self, arguments: Sequence[str], means: PluginMeans) -> None:
        self.arguments = arguments
        self.means = means

    def refuses(self, job: Doc) -> str:
        """Why this plugin cannot serve a Job, whose pods are then not made; empty if it can."""
        return ""

    def outgrows(self, job: Doc) -> str:
        """Why what this plugin would write is larger than any API server takes: neither its objects nor the Job's pods
        are made then; empty if it is not. Without it a Job of two thousand million pods would fill the memory."""
        return ""

    def on_pod_create(self, pod: Doc, job: Doc) -> None:
        """Add to a pod that is about to be created; it is ours to change."""

    def names_beside(self, job: Doc) -> Sequence[tuple[Kind, str]]:
        """Kind and name of each object that this plugin keeps."""
        return ()

    def objects(self, job: Doc) -> Iterable[Beside]:
        """Those objects, as they shall be created."""
        return ()

    def refreshed(self, job: Doc) -> Iterable[Beside]:
        """Those of them that follow the Job's spec when it changes."""
        return ()


# ---- what several plugins need ----


def containers_of(pod: Doc, *, init: bool = False) -> list[dict[str, Any]]:
    spec = pod["spec"]
    return [*(spec.get("containers") or ()), *((spec.get("initContainers") or ()) if init else ())]


def add_env(container: dict[str, Any], *variables: Doc) -> None:
    container["env"] = [*(container.get("env") or ()), *variables]


def task_of(pod: Doc) -> str:
    name: str = pod["metadata"]["annotations"]["volcano.sh/task-spec"]
    return name


def index_of(pod: Doc) -> int:
    return int(pod["metadata"]["annotations"]["volcano.sh/task-index"])


def find_task(job: Doc, name: str) -> Doc | None:
    return next((task for task in job["spec"].get("tasks") or () if task.get("name") == name), None)


def replicas_of(task: Doc | None) -> int:
    return 0 if task is None else int(task.get("replicas") or 0)


def hostname_of(job: Doc, task: Doc, index: int) -> str:
    """What a pod of a task is called inside: the template's hostname, else the pod's name."""
    spec = (task.get("template") or {}).get("spec") or {}
    return str(spec.get("hostname") or f"{job['metadata']['name']}-{task.get('name') or ''}-{index}")


def subdomain_of(job: Doc, task: Doc) -> str:
    spec = (task.get("template") or {}).get("spec") or {}
    return str(spec.get("subdomain") or job["metadata"]["name"])


def address_of(job: Doc, task: Doc, index: int) -> str:
    return f"{hostname_of(job, task, index)}.{subdomain_of(job, task)}"


def addresses_of(job: Doc, task: Doc) -> list[str]:
    """One per pod; a task with a hostname of its own has one address whatever its replicas."""
    if ((task.get("template") or {}).get("spec") or {}).get("hostname"):
        return [address_of(job, task, 0)] if replicas_of(task) else []
    return [address_of(job, task, index) for index in range(replicas_of(task))]


def too_many_hosts(job: Doc, tasks: Iterable[Doc]) -> str:
    """Why a list of the hosts of some tasks is larger than an object may be; empty if it is not, or only just is."""
    total = 0
    for task in tasks:
        has_one = bool(((task.get("template") or {}).get("spec") or {}).get("hostname"))
        total += len(address_of(job, task, 0)) * (1 if has_one else replicas_of(task))
    return f"the hosts of job {job['metadata']['name']} are too many to be listed in one object" * (total > _MOST_TEXT)


def owned_by(job: Doc, kind: Kind, name: str, **fields: Any) -> Beside:
    """An object that the Job owns."""
    metadata = {
        "namespace": job["metadata"]["namespace"],
        "name": name,
        "ownerReferences": [owner_reference(VC_JOB, job)],
    }
    return Beside(kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields})


def open_port(container: dict[str, Any], name: str, number: int) -> None:
    """Declare a port, unless the container has it under whatever name."""
    ports = container.get("ports") or []
    if not any(port.get("containerPort") == number for port in ports):
        container["ports"] = [*ports, {"name": name, "containerPort": number}]


class PluginFlags:
    """GNU-style flags in a list of strings: `--name=value`, `-name=value`, `--name value`, `--switch`.

    The defaults say which flags there are, and of what type. As in the original, the first word that cannot be read
    ends the reading: what came before it counts, and everything else keeps its default.
    """

    def __init__(self, arguments: Sequence[str], **defaults: str | int | bool) -> None:
        self._values: dict[str, Any] = {name.replace("_", "-"): value for name, value in defaults.items()}
        words = list(arguments or ())
        while words and self._take(words):
            pass

    def _take(self, words: list[str]) -> bool:
        """Read the next flag; says whether it could be read."""
        name, equals, text = words.pop(0).partition("=")
        if not name.startswith("-") or name.startswith("---") or name.strip("-") not in self._values:
            return False
        name = name.lstrip("-")
        value: Any
        if isinstance(self._values[name], bool):
            value = _BOOLEANS.get(text) if equals else True
        else:
            text = text if equals else words.pop(0) if words else ""
            value = _whole(text) if isinstance(self._values[name], int) else text
        if value is not None:
            self._values[name] = value
        return value is not None

    def text(self, name: str) -> str:
        return str(self._values[name])

    def number(self, name: str) -> int:
        return int(self._values[name])

    def switch(self, name: str) -> bool:
        return bool(self._values[name])


_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def _whole(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None
