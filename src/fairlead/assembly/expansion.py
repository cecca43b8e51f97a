"""expand: the pods and groups that admission and controllers would make of some objects, without making them anywhere.

    objects ─▶ a Store of their own, with what admission reads of the cluster ─▶ the usual controllers ─▶ pods, groups

The objects pass the same admission and the same controllers as in a cluster of `fairlead up`, so a LimitRange, a
PriorityClass or a quota counts, and what is wrong is refused in the same words. Pods are let run at once, so that a
StatefulSet goes on to its next pod and a Volcano Job creates its pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING

from fairlead.assembly.applying import holds_already, patch_of_apply
from fairlead.assembly.cluster import ClusterAssembly
from fairlead.assembly.foreign_owners import is_foreign, pods_of
from fairlead.cluster.store.schema import is_custom
from fairlead.core.model import kinds
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.times import timestamp
from fairlead.errors import ApiError, ConfigError, Forbidden, Invalid
from fairlead.koordinator.kinds import (
    KOORD_DEVICE,
    KOORD_ELASTIC_QUOTA,
    KOORD_NETWORK_TOPOLOGY,
    KOORD_POD_GROUP,
    KOORD_RESERVATION,
)
from fairlead.runtime.virtual import VirtualClock, VirtualRuntime
from fairlead.volcano.kinds import VC_HYPER_NODE, VC_POD_GROUP, VC_QUEUE

if TYPE_CHECKING:
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

CONTEXT: tuple[Kind, ...] = (
    kinds.NAMESPACE, kinds.PRIORITY_CLASS, kinds.RUNTIME_CLASS, kinds.LIMIT_RANGE, kinds.RESOURCE_QUOTA,
    kinds.STORAGE_CLASS, kinds.DEVICE_CLASS, kinds.RESOURCE_CLAIM_TEMPLATE, VC_QUEUE,
)  # fmt: skip
"""What admission and controllers read of the cluster for any workload."""
_CONTROLLERS = (
    "deployment-controller", "replicaset-controller", "replicationcontroller-controller", "statefulset-controller",
    "daemonset-controller", "job-controller", "ephemeral-volume-controller", "resourceclaim-controller",
    "volcano-podgroup-controller", "volcano-job-controller",
)  # fmt: skip
_MADE: tuple[Kind, ...] = (
    kinds.NODE, kinds.JOB, kinds.PERSISTENT_VOLUME, kinds.PERSISTENT_VOLUME_CLAIM, kinds.RESOURCE_CLAIM,
    kinds.REPLICA_SET, kinds.STATEFUL_SET, kinds.REPLICATION_CONTROLLER, kinds.POD_DISRUPTION_BUDGET, kinds.SERVICE,
    kinds.POD_GROUP_BETA, kinds.POD_GROUP, kinds.X_POD_GROUP,
    VC_HYPER_NODE, VC_QUEUE, VC_POD_GROUP, kinds.DEVICE_CLASS, kinds.RESOURCE_SLICE,
    KOORD_POD_GROUP, KOORD_ELASTIC_QUOTA, KOORD_RESERVATION, KOORD_DEVICE,
    KOORD_NETWORK_TOPOLOGY,
)  # fmt: skip
"""Of what is made, all that scheduling reads, besides the pods. Owners are read for the spreading by default."""
_ROUNDS = 10_000


def needed(documents: Iterable[Doc]) -> tuple[Kind, ...]:
    """The kinds of the cluster whose objects `expand` needs for these documents."""
    daemons = any(doc.get("kind") == "DaemonSet" for doc in documents)
    return (*CONTEXT, *((kinds.NODE,) if daemons else ()))


def expand(
    documents: Sequence[Doc], context: Iterable[Doc], *, now: float, settings: Sequence[object] = ()
) -> list[Doc]:
    """Everything that scheduling would see of the documents: objects first, then pods in the order in which they are
    made. `settings` are those of the families where they would be applied. Raises ConfigError if an object would be
    refused."""
    clock = VirtualClock(now)
    cluster = ClusterAssembly(names=_CONTROLLERS, settings=settings, seed=0, announce=False)
    store = _store_with(cluster, clock, context)
    before = {(kind, _key(doc)) for kind in _MADE for doc in store.list(kind)}
    owners = [_create(store, doc, now) for doc in documents]
    order = _played(cluster, store, clock)
    made = [doc for kind in _MADE for doc in store.list(kind) if (kind, _key(doc)) not in before]
    pods = [store.read(kinds.POD, *key) for key in order]
    return [*(one for one in owners if one is not None), *map(_fresh, made), *map(_fresh, pods)]


def applied(
    documents: Sequence[Doc],
    context: Iterable[Doc],
    live: Sequence[Doc],
    *,
    now: float,
    settings: Sequence[object] = (),
) -> list[Doc]:
    """Everything that scheduling would see of the documents if they were applied to what exists of them, `live`, and
    the Deployments and StatefulSets among it. Raises ConfigError if a change would be refused."""
    clock = VirtualClock(now)
    cluster = ClusterAssembly(names=_CONTROLLERS, settings=settings, seed=0, announce=False)
    store = _store_with(cluster, clock, [*context, *map(_nowhere, live)])
    before = {doc["metadata"]["uid"] for kind in _MADE for doc in store.list(kind)}
    there = {(doc["kind"], _key(doc)): doc for doc in live}
    for doc in documents:
        known = there.get((doc["kind"], (doc["metadata"].get("namespace", ""), doc["metadata"].get("name", ""))))
        if known is None:
            _create(store, doc, now)
        elif not is_foreign(doc):
            _apply(store, known, doc)
    _played(cluster, store, clock)
    kept = {doc["metadata"]["uid"]: doc for doc in live}
    others = before - kept.keys()
    objects = [doc for kind in (*_MADE, kinds.DEPLOYMENT) for doc in store.list(kind)]
    pods = sorted(store.list(kinds.POD), key=lambda doc: int(doc["metadata"]["resourceVersion"]))
    return [
        _fresh(doc) if uid not in kept else _as_it_was(kept[uid], doc)
        for doc in (*objects, *pods)
        if (uid := doc["metadata"]["uid"]) not in others
    ]


def _as_it_was(known: Doc, doc: Doc) -> Doc:
    """An object with the status that it really has, because here everything was let run."""
    status = {"status": known["status"]} if "status" in known else {}
    return {key: value for key, value in doc.items() if key != "status"} | status


def _nowhere(doc: Doc) -> Doc:
    """A pod without its node: no kubelet is here that would end it when it is deleted."""
    if doc["kind"] != "Pod" or not doc["spec"].get("nodeName"):
        return doc
    return {**doc, "spec": {key: value for key, value in doc["spec"].items() if key != "nodeName"}}


def _store_with(cluster: ClusterAssembly, clock: VirtualClock, documents: Iterable[Doc]) -> Store:
    store = cluster.store(clock, rng=Random("what if"))
    for doc in documents:
        kind = store.registry.by_kind(doc["apiVersion"], doc["kind"])
        if kind is not None:
            store.restore(kind, doc)
    return store


def _played(cluster: ClusterAssembly, store: Store, clock: VirtualClock) -> list[tuple[str, str]]:
    """Let controllers do their work; the names of the pods in the order of their making."""
    refusals: list[str] = []
    runtime = VirtualRuntime(
        store, cluster.joining(store), clock=clock, perform=lambda _, write: _as_controller(store, write, refusals)
    )
    order = _let_run(store, runtime)
    if refusals:
        raise ConfigError(refusals[0])
    return order


def _apply(store: Store, live: Doc, doc: Doc) -> None:
    """Change an object that exists, as `kubectl apply` would."""
    kind = store.registry.by_kind(doc["apiVersion"], doc["kind"])
    assert kind is not None
    dialect = PatchType.MERGE if is_custom(kind) else PatchType.STRATEGIC
    namespace, name = live["metadata"].get("namespace", ""), live["metadata"]["name"]
    patch = patch_of_apply(live, doc)
    if holds_already(live, {key: value for key, value in patch.items() if key != "kind"}):
        return
    try:
        store.perform(Write(Verb.PATCH, kind, namespace, name, body=patch, patch_type=dialect))
    except ApiError as error:
        raise ConfigError(f"{doc['kind']} {name} would be refused: {error.message}") from error


def _create(store: Store, doc: Doc, now: float) -> Doc | None:
    """Create an object. A CronJob stands for one Job of it; an owner of a foreign kind is returned, for its pods."""
    metadata = doc["metadata"]
    if is_foreign(doc):
        namespace = metadata.get("namespace") or "default"
        uid = f"what-if-{doc['kind'].lower()}-{namespace}-{metadata['name']}"
        owner = {**doc, "metadata": {**metadata, "namespace": namespace, "uid": uid}}
        for pod in pods_of(owner):
            _perform(store, pod)
        return owner
    if doc["kind"] == "CronJob" and doc["apiVersion"] == kinds.CRON_JOB.api_version:
        _perform(store, doc)
        template = doc["spec"]["jobTemplate"]
        name = f"{metadata['name']}-{int(now // 60)}"
        cron = store.read(kinds.CRON_JOB, metadata.get("namespace") or "default", metadata["name"])
        owner = {"apiVersion": doc["apiVersion"], "kind": "CronJob", "name": metadata["name"], "controller": True}
        job_metadata = {
            **(template.get("metadata") or {}),
            "name": name,
            "namespace": metadata.get("namespace"),
            "ownerReferences": [{**owner, "uid": cron["metadata"]["uid"]}],
        }
        doc = {"apiVersion": "batch/v1", "kind": "Job", "metadata": job_metadata, "spec": template["spec"]}
    _perform(store, doc)
    return None


def _perform(store: Store, doc: Doc) -> None:
    kind = store.registry.by_kind(doc["apiVersion"], doc["kind"])
    title = f"{doc['kind']} {doc['metadata'].get('name') or doc['metadata'].get('generateName', '')}"
    if kind is None:
        raise ConfigError(f"{title}: kind {doc['kind']} of {doc['apiVersion']} is not known here")
    namespace = doc["metadata"].get("namespace") or ("default" if kind.namespaced else "")
    if kind.namespaced and store.get(kinds.NAMESPACE, "", namespace) is None:
        raise ConfigError(f'{title}: there is no namespace "{namespace}"', hint=f"kubectl create namespace {namespace}")
    try:
        store.perform(Write(Verb.CREATE, kind, namespace, doc["metadata"].get("name", ""), body=doc))
    except ApiError as error:
        raise ConfigError(f"{title} would be refused: {error.message}") from error


def _as_controller(store: Store, write: Write, refusals: list[str]) -> Doc:
    """Perform a controller's write. A pod that admission refuses would be missing later, so it is noted."""
    try:
        return store.perform(write)
    except (Forbidden, Invalid) as error:
        if write.kind is kinds.POD and write.verb is Verb.CREATE:
            owners = write.body["metadata"].get("ownerReferences") or ()
            owner = next((f"{one['kind']} {one['name']}" for one in owners if one.get("controller")), "controller")
            refusals.append(f"pods of {owner} would be refused: {error.message}")
        raise


def _let_run(store: Store, runtime: VirtualRuntime) -> list[tuple[str, str]]:
    """Let controllers make pods until none is added; returns the names of the pods in the order of their making."""
    order: dict[tuple[str, str], None] = {}
    for _ in range(_ROUNDS):
        runtime.settle()
        fresh = [key for doc in store.list(kinds.POD) if (key := _key(doc)) not in order]
        fresh.sort(key=lambda key: int(store.read(kinds.POD, *key)["metadata"]["resourceVersion"]))
        let_in = [doc for doc in store.list(VC_POD_GROUP) if (doc.get("status") or {}).get("phase") in _NOT_IN]
        if not fresh and not let_in:
            break
        order.update(dict.fromkeys(fresh))
        for doc in let_in:
            _patch_status(store, VC_POD_GROUP, _key(doc), {"phase": "Inqueue"})
        for key in fresh:
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": timestamp(runtime.now)}
            _patch_status(store, kinds.POD, key, {"phase": "Running", "conditions": [ready]})
    return [key for key in order if store.get(kinds.POD, *key) is not None]


_NOT_IN = (None, "", "Pending")


def _patch_status(store: Store, kind: Kind, key: tuple[str, str], status: Doc) -> None:
    subresource = "status" if "status" in kind.subresources else ""
    store.perform(Write(Verb.PATCH, kind, *key, body={"status": status}, subresource=subresource))


def _key(doc: Doc) -> tuple[str, str]:
    return doc["metadata"].get("namespace", ""), doc["metadata"]["name"]


def _fresh(doc: Doc) -> Doc:
    """The object as its controllers would make it: nothing has happened to it yet."""
    if doc["kind"] == "Pod":
        claims = (doc.get("status") or {}).get("resourceClaimStatuses")
        return {**doc, "status": {"phase": "Pending", **({"resourceClaimStatuses": claims} if claims else {})}}
    if doc["kind"] == "PodGroup" and doc["apiVersion"] == VC_POD_GROUP.api_version:
        return {**doc, "status": {"phase": "Pending"}}
    return doc
