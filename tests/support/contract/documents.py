"""The objects that the contract suite plays with."""

from __future__ import annotations

from typing import Any

Doc = dict[str, Any]


def pod(name: str, *, labels: Doc | None = None, spec: Doc | None = None, **metadata: Any) -> Doc:
    spec = {"containers": [{"name": "main", "image": "example.com/app:1"}]} | (spec or {})
    return {"metadata": {"name": name, "labels": labels or {}} | metadata, "spec": spec}


def config(name: str, data: Doc | None = None, *, labels: Doc | None = None, **metadata: Any) -> Doc:
    return {"metadata": {"name": name, "labels": labels or {}} | metadata, "data": data or {}}


def node(name: str, *, labels: Doc | None = None, **spec: Any) -> Doc:
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"capacity": amounts}}


def deployment(name: str, replicas: int = 1) -> Doc:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod(name)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}
