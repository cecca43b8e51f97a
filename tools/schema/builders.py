"""The words that the recorded cases are written in: a thing, a container, a pod, a template, a change of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Doc = dict[str, Any]
Change = Callable[[Doc], Any]


def thing(api_version: str, kind: str, name: str = "x", **fields: Any) -> Doc:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def container(**fields: Any) -> Doc:
    return {"name": "c", "image": "nginx", **fields}


def pod(name: str = "x", *, labels: Doc | None = None, annotations: Doc | None = None, **spec: Any) -> Doc:
    doc = thing("v1", "Pod", name, spec={"containers": [container()], **spec})
    if labels is not None:
        doc["metadata"]["labels"] = labels
    if annotations is not None:
        doc["metadata"]["annotations"] = annotations
    return doc


TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}}
ONCE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()], "restartPolicy": "Never"}}
SELECTOR = {"matchLabels": {"a": "b"}}


def put(path: str, value: Any) -> Change:
    """A change of one value; a value of None removes it."""

    def change(doc: Doc) -> None:
        *way, last = path.split(".")
        node: Any = doc
        for name in way:
            node = node[int(name)] if isinstance(node, list) else node.setdefault(name, {})
        where = int(last) if isinstance(node, list) else last
        if value is None:
            node.pop(where)
        else:
            node[where] = value

    return change
