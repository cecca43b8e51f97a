"""`vcctl jobflow` and `vcctl jobtemplate`: create, delete, describe, get, list."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import yaml

from fairlead.cluster.tables.columns import age
from fairlead.errors import ApiError
from fairlead.volcano.kinds import VC_JOB_FLOW, VC_JOB_TEMPLATE
from fairlead.volcano.vcctl.work import VcFault, VcWork, columns, read_yaml

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_KINDS = {"jobflow": (VC_JOB_FLOW, "jobflow"), "jobtemplate": (VC_JOB_TEMPLATE, "job template")}
_SPACING = 4
_ORDER = (
    "kind", "apiVersion", "metadata", "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
    "spec", "status", "schedulerName", "minAvailable", "replicas", "volumes", "initContainers", "containers", "image",
    "command", "args", "workingDir", "ports", "env", "resources", "flows", "tasks", "template", "policies", "plugins",
    "runningEstimate", "queue", "topologyPolicy", "maxRetry", "dependsOn", "jobRetainPolicy", "phase", "createTime",
    "pendingJobs", "runningJobs", "failedJobs", "completedJobs", "terminatedJobs", "unKnowJobs", "jobStatusList",
    "conditions",
)  # fmt: skip
"""Fields of Go's types in their order, as far as no two types disagree; the others come after them."""
_ORDERS = {
    "jobStatusList": ("name", "state", "startTimestamp", "endTimestamp", "restartCount", "runningHistories"),
    "runningHistories": ("startTimestamp", "endTimestamp", "state"),
}
_OPEN_ENDED = ("jobStatusList", "runningHistories")


def _kind(work: VcWork) -> Kind:
    return _KINDS[work.kind][0]


async def create(work: VcWork) -> None:
    for doc in read_yaml(work.values["file"]):
        metadata = doc.setdefault("metadata", {})
        metadata.setdefault("namespace", "default")
        await work.create(_kind(work), doc)
        work.out(f"Created {_kind(work).kind}: {metadata['namespace']}/{metadata['name']}")


async def delete(work: VcWork) -> None:
    kind = _kind(work)
    if work.values["file"]:
        for doc in read_yaml(work.values["file"]):
            namespace, name = doc["metadata"].get("namespace") or "default", doc["metadata"]["name"]
            try:
                await work.remove(kind, namespace, name)
            except ApiError as error:
                work.out(f"Failed to delete {kind.kind}: {error.message}")
                continue
            work.out(f"Deleted {kind.kind}: {namespace}/{name}")
        return
    if not work.name:
        raise VcFault(f"{_KINDS[work.kind][1]} name must be specified")
    await work.remove(kind, work.namespace, work.name)
    work.out(f"Deleted {kind.kind}: {work.namespace}/{work.name}")


async def get(work: VcWork) -> None:
    if not work.name:
        raise VcFault(f"name is mandatory to get the particular {_KINDS[work.kind][1]} details")
    _print(work, [await work.api.get(_kind(work), work.namespace, work.name)])


async def list_all(work: VcWork) -> None:
    docs = await work.listed(_kind(work), "" if work.values.get("all-namespaces") else work.namespace)
    if not docs:
        work.out("No resources found")
        return
    _print(work, docs)


def _print(work: VcWork, docs: list[Doc]) -> None:
    is_flow = work.kind == "jobflow"
    rows = [["Name", "Namespace", *(["Phase", "Age"] if is_flow else [])]]
    for doc in docs:
        row = [doc["metadata"]["name"], doc["metadata"]["namespace"]]
        if is_flow:
            phase = ((doc.get("status") or {}).get("state") or {}).get("phase") or ""
            row += [phase, age(doc, work.now())]
        rows.append(row)
    for line in columns(rows, _SPACING):
        work.out(line)


async def describe(work: VcWork) -> None:
    kind, name = _kind(work), work.name
    docs = [await work.api.get(kind, work.namespace, name)] if name else await work.listed(kind, work.namespace)
    for doc in docs:
        shown = _shown(doc, kind)
        if work.values["format"] == "json":
            work.out(json.dumps(_ordered(shown), indent=2, ensure_ascii=False))
        elif work.values["format"] == "yaml":
            work.out(yaml.dump(shown, Dumper=_GoYaml, default_flow_style=False, allow_unicode=True).removesuffix("\n"))
        else:
            raise VcFault(f"unsupported format: {work.values['format']}")


class _GoYaml(yaml.SafeDumper):
    """Quotes with two strokes, as Go's library does."""


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    node = yaml.SafeDumper.represent_str(dumper, text)
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    plain = tag == "tag:yaml.org,2002:str"
    return node if plain else yaml.ScalarNode(node.tag, text, style='"')


_GoYaml.add_representer(str, _quoted)


def _shown(doc: Doc, kind: Kind) -> Doc:
    """As the original's types spell it: ends that have not come are null, and field managers are left out."""
    metadata = {name: value for name, value in doc["metadata"].items() if name != "managedFields"}
    shown: Doc = {**doc, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    if kind is VC_JOB_TEMPLATE:
        shown["spec"] = {**shown["spec"], "tasks": [_with_metadata(task) for task in shown["spec"].get("tasks") or ()]}
    if shown.get("status"):
        shown["status"] = _open_ended(shown["status"])
    return shown


def _with_metadata(task: Doc) -> Doc:
    return {**task, "template": {"metadata": {}, **(task.get("template") or {})}}


def _open_ended(value: Any, within: str = "") -> Any:
    if isinstance(value, dict):
        made = {name: _open_ended(part, name) for name, part in value.items()}
        return {"endTimestamp": None, **made} if within in _OPEN_ENDED else made
    if isinstance(value, list):
        return [_open_ended(part, within) for part in value]
    return value


def _ordered(value: Any, within: str = "") -> Any:
    """JSON comes in the order of Go's fields."""
    order = _ORDERS.get(within, _ORDER)
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: order.index(name) if name in order else len(order))
        return {name: _ordered(value[name], name) for name in names}
    return [_ordered(part, within) for part in value] if isinstance(value, list) else value


ACTIONS: Mapping[str, Callable[[VcWork], Awaitable[None]]] = {
    "create": create, "delete": delete, "describe": describe, "get": get, "list": list_all,
}  # fmt: skip
