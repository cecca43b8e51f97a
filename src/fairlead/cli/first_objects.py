"""The objects that every cluster has before its users come: the Service `kubernetes`, and a default StorageClass.

Charts and manifests count on both. The class binds volumes when their pod is placed, as the default classes of kind
and managed clusters do. What is there already, from an earlier start or a snapshot, is left as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Verb, Write

if TYPE_CHECKING:
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.kinds import Kind

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
SERVICE: Doc = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
    "spec": {
        "type": "ClusterIP",
        "clusterIP": "10.96.0.1",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
    },
}
STORAGE_CLASS: Doc = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {_DEFAULT_CLASS: "true"}},
    "provisioner": "fairlead.io/simulated",
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def make_first_objects(store: Store) -> None:
    _make(store, kinds.SERVICE, SERVICE, namespace="default")
    if not any(_is_default(one) for one in store.list(kinds.STORAGE_CLASS)):
        _make(store, kinds.STORAGE_CLASS, STORAGE_CLASS)


def _is_default(storage_class: Doc) -> bool:
    return (storage_class["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"


def _make(store: Store, kind: Kind, doc: Doc, *, namespace: str = "") -> None:
    name = doc["metadata"]["name"]
    if store.get(kind, namespace, name) is None:
        store.perform(Write(Verb.CREATE, kind, namespace, name, body=doc))
