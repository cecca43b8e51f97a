"""Requests that no client should make, from a seed: paths, parameters, headers and bodies, sensible and not.

Half of them begin as good requests that are then broken in a place or two, because nonsense alone is refused at the
door and never reaches what it might break.
"""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import orjson

from fairlead.cluster.store.store import Store
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import Kind, served_kinds
from fairlead.volcano.kinds import VC_JOB, VC_POD_GROUP, VC_QUEUE

NAMES = ("a", "b", "c", "web", "x" * 300, "UPPER", "ä", "..", "a%2Fb", "")
NAMESPACES = ("default", "kube-system", "team", "nowhere", "", "ä")
SUBRESOURCES = (
    "",
    "",
    "",
    "",
    "status",
    "scale",
    "binding",
    "eviction",
    "finalize",
    "token",
    "log",
    "nothing",
    "resize",
)
METHODS = (
    *["GET"] * 4, *["POST"] * 6, *["PUT"] * 5, *["PATCH"] * 8, "DELETE", "HEAD", "OPTIONS",
)  # fmt: skip
PATCHES = (
    "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)  # fmt: skip
TYPES = (
    *["application/json"] * 40, "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", "",
    "application/json; charset=utf-8", "multipart/form-data", "application/cbor",
)  # fmt: skip
ACCEPTS = (
    *["application/json"] * 30, "*/*", "", "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf",
    "text/html,;;",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", "application/yaml", ";=,=;",
)  # fmt: skip
PARAMETERS: dict[str, tuple[str, ...]] = {
    "labelSelector": ("a=b", "a in (b,c)", "!a", "a=", "((", "a in", "x" * 400, "ä=ö", "a>1"),
    "fieldSelector": ("metadata.name=a", "spec.nodeName=x", "nope=1", "metadata.name", "\\", "a=b,c"),
    "limit": ("1", "0", "-1", "x", "99999999999999999999", "1.5"),
    "continue": ("abc", "", "eyJ2IjoxfQ", "AAAA", "ä"),
    "resourceVersion": ("0", "1", "5", "99999999", "x", "-1", "1" * 40, "9" * 5000),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "Sometimes"),
    "dryRun": ("All", "None", "", "all"),
    "fieldManager": ("me", "", "x" * 200, "ä\n"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "Sometimes"),
    "force": ("true", "false", "maybe"),
    "propagationPolicy": ("Orphan", "Foreground", "Background", "Sideways"),
    "gracePeriodSeconds": ("0", "5", "-3", "x", "9" * 30),
    "includeObject": ("None", "Object", "Everything"),
    "pretty": ("true",),
}
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.5, -0.0, 2**31, 2**63, 2**64, -(2**63), 1e308, "", " ", "a", "ä", "\u0000", "\ud7ff",
    "😀", "x" * 5000, "1e999999999", "1e-999", "9" * 400, "-5", "100m", "1Ki", "2024-01-01T00:00:00Z", "not a time",
    [], {}, [[]], [None], {"": None}, {"a": {"b": {"c": []}}}, ["a", 1, None, {}], {"matchLabels": 5}, "{{", "$patch",
    {"$patch": "replace"}, {"$patch": "explode"}, {"$retainKeys": 5}, {"$setElementOrder/containers": [1]},
)  # fmt: skip


def strange(rng: random.Random) -> Any:
    """One of them, as a copy: documents are broken in more than one place, and none may come to hold itself."""
    return deepcopy(rng.choice(STRANGE))


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    params: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def _pod_spec() -> dict[str, Any]:
    return {
        "containers": [
            {
                "name": "main",
                "image": "x",
                "ports": [{"containerPort": 80, "hostPort": 80}],
                "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1"}},
                "env": [{"name": "A", "value": "1"}],
            }
        ],
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
                }
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
                ]
            },
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            }
        ],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "emptyDir": {}}],
    }


def _template() -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "a"}}, "spec": _pod_spec()}


_SELECTOR = {"matchLabels": {"app": "a"}}
_DEFINITION = {
    "group": "fuzz.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
    "versions": [{
        "name": "v1", "served": True, "storage": True,
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
        "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n"}],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
            "type": "object", "required": ["n"],
            "x-kubernetes-validations": [{"rule": "self.n < 10 && size(self.l) < 5", "message": "too many"}],
            "properties": {
                "n": {"type": "integer", "minimum": 0}, "f": {"type": "number"},
                "s": {"type": "string", "pattern": "^a"},
                "l": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "default": []},
                "m": {"type": "object", "additionalProperties": {"type": "string"}},
                "any": {"x-kubernetes-preserve-unknown-fields": True}, "is": {"x-kubernetes-int-or-string": True},
            }}}}},
    }],
}  # fmt: skip
THING = Kind("fuzz.example.com", "v1", "Thing", "things")
BODIES: dict[Kind, dict[str, Any]] = {
    kinds.POD: {"spec": _pod_spec()},
    kinds.NODE: {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
                 "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}},
    kinds.NAMESPACE: {},
    kinds.CONFIG_MAP: {"data": {"a": "1", "b": "2"}},
    kinds.SECRET: {"data": {"a": "MQ=="}, "type": "Opaque"},
    kinds.SERVICE: {"spec": {"selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": "http"}]}},
    kinds.SERVICE_ACCOUNT: {},
    kinds.DEPLOYMENT: {"spec": {"replicas": 2, "selector": _SELECTOR, "template": _template()}},
    kinds.STATEFUL_SET: {"spec": {"serviceName": "s", "selector": _SELECTOR, "template": _template()}},
    kinds.JOB: {"spec": {"completions": 2, "template": {"spec": _pod_spec() | {"restartPolicy": "Never"}}}},
    kinds.CRON_JOB: {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {
        "spec": _pod_spec() | {"restartPolicy": "Never"}}}}}},
    kinds.POD_DISRUPTION_BUDGET: {"spec": {"minAvailable": "50%", "selector": _SELECTOR}},
    kinds.PRIORITY_CLASS: {"value": 5, "description": "x"},
    kinds.PERSISTENT_VOLUME_CLAIM: {"spec": {"accessModes": ["ReadWriteOnce"],
                                             "resources": {"requests": {"storage": "1Gi"}}}},
    kinds.PERSISTENT_VOLUME: {"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                                       "hostPath": {"path": "/x"}}},
    kinds.RESOURCE_QUOTA: {"spec": {"hard": {"pods": "10", "requests.cpu": "4"}}},
    kinds.LIMIT_RANGE: {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
    kinds.EVENT: {"involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"}, "reason": "X"},
    kinds.LEASE: {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}},
    VC_JOB: {"spec": {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": _template()}]}},
    VC_QUEUE: {"spec": {"weight": 1, "capability": {"cpu": "10"}}},
    VC_POD_GROUP: {"spec": {"minMember": 2, "queue": "default"}},
    kinds.CUSTOM_RESOURCE_DEFINITION: {"spec": _DEFINITION},
    THING: {"spec": {"n": 1, "s": "abc", "l": ["x"], "m": {"k": "v"}, "any": {"deep": [1, {"a": None}]}, "is": "80%"}},
}  # fmt: skip


def populate(store: Store) -> None:
    """Something to hit: two good objects of each kind that has a body here, and a kind of the users' own."""
    perform = store.perform
    perform(Write(Verb.CREATE, kinds.NAMESPACE, "", "team", body={}))
    name = "things.fuzz.example.com"
    perform(
        Write(Verb.CREATE, kinds.CUSTOM_RESOURCE_DEFINITION, "", name, body=BODIES[kinds.CUSTOM_RESOURCE_DEFINITION])
    )
    for kind, body in BODIES.items():
        if kind is not kinds.CUSTOM_RESOURCE_DEFINITION:
            served = store.registry.by_resource(kind.group, kind.version, kind.plural)
            assert served is not None
            for name in NAMES[:2]:
                where = "default" if kind.namespaced else ""
                params = {"fieldManager": "me"}
                perform(Write(Verb.CREATE, served, where, name, body=deepcopy(body), params=params))


class Fuzz:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def request(self) -> Request:
        rng = self.rng
        if rng.random() < 0.04:
            return self._nowhere()
        kind = self.kind()
        method = rng.choice(METHODS)
        name = rng.choice(NAMES[:2]) if rng.random() < 0.9 else rng.choice(NAMES)
        namespace = "default" if rng.random() < 0.9 else rng.choice(NAMESPACES)
        subresource = rng.choice(SUBRESOURCES) if rng.random() < 0.25 else ""
        if kind is kinds.CUSTOM_RESOURCE_DEFINITION and rng.random() < 0.9:
            name = "things.fuzz.example.com"
        whole = (method == "POST" and not subresource) or (method == "GET" and rng.random() < 0.5)
        path = kind.path(namespace, "" if whole else name, "" if whole else subresource)
        headers = {"Accept": rng.choice(ACCEPTS), "Content-Type": self._content_type(method)}
        return Request(method, path, self._params(), headers, self._body(method, kind, name, namespace))

    def kind(self) -> Kind:
        rng = self.rng
        return rng.choice(tuple(BODIES)) if rng.random() < 0.9 else rng.choice(served_kinds())

    def _nowhere(self) -> Request:
        rng = self.rng
        words = ("api", "apis", "v1", "openapi", "v3", "apps", "..", "", "x" * 50, "ä", "pods")
        path = "/" + "/".join(rng.choice(words) for _ in range(rng.randrange(6)))
        return Request(rng.choice(METHODS), path, self._params(), {"Accept": rng.choice(ACCEPTS)})

    def _params(self) -> dict[str, str]:
        rng = self.rng
        chosen = rng.sample(sorted(PARAMETERS), k=rng.choice((0, 0, 0, 1, 1, 2)))
        return {name: rng.choice(PARAMETERS[name]) for name in chosen}

    def _content_type(self, method: str) -> str:
        rng = self.rng
        return rng.choice(PATCHES) if method == "PATCH" and rng.random() < 0.95 else rng.choice(TYPES)

    def _body(self, method: str, kind: Kind, name: str, namespace: str) -> bytes:
        rng = self.rng
        if method in ("GET", "HEAD", "OPTIONS"):
            return b""
        if rng.random() < 0.06:
            return self._garbage()
        if method == "DELETE":
            doc: Any = {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": "x"} if rng.random() < 0.1 else {},
            }
        elif method == "PATCH" and rng.random() < 0.3:
            doc = [{"op": rng.choice(("add", "remove", "replace", "test", "move", "copy", "dance")),
                    "path": rng.choice(("/metadata/labels", "/spec/replicas", "/spec/containers/0/image", "/", "",
                                        "metadata", "/metadata/name", "/spec/containers/-", "/a~2b")),
                    "from": "/metadata", "value": strange(rng)}]  # fmt: skip
        else:
            doc = self.document(kind, name, namespace)
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            doc = self._broken(doc)
        return _encoded(doc)

    def document(self, kind: Kind, name: str, namespace: str) -> dict[str, Any]:
        rng = self.rng
        metadata: dict[str, Any] = {"name": name, "labels": {"app": "a"}}
        if kind.namespaced:
            metadata["namespace"] = namespace
        if rng.random() < 0.1:
            metadata["resourceVersion"] = rng.choice(("1", "7", "x", "", "99999"))
        if rng.random() < 0.05:
            metadata["finalizers"] = ["example.com/hold"]
        if rng.random() < 0.05:
            metadata["managedFields"] = rng.choice(([{}], [], [{"operation": "Apply", "fieldsV1": {"f:a": {}}}], 5))
        head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        return head | deepcopy(BODIES.get(kind, {"spec": {}}))

    def _broken(self, doc: Any) -> Any:
        """One place of the document is something else, is gone, or has company."""
        rng, places = self.rng, list(_places(doc))
        if not places:
            return strange(rng)
        parent, key = rng.choice(places)
        match rng.randrange(5):
            case 0 if isinstance(parent, dict):
                del parent[key]
            case 1 if isinstance(parent, dict):
                parent[rng.choice(("unknown", "", "ä", "$ref", "x" * 100))] = strange(rng)
            case 2 if isinstance(parent, list):
                parent.append(deepcopy(parent[key]))
            case _:
                parent[key] = strange(rng)
        return doc

    def _garbage(self) -> bytes:
        rng = self.rng
        return rng.choice(
            (
                b"",
                b"{",
                b"[]",
                b"null",
                b"5",
                b'"text"',
                b"{]",
                b'{"a":',
                b"\xff\xfe\x00",
                b"[" * 5000,
                b'{"a":' * 3000,
                b"k8s\x00\xff\xff",
                b"k8s\x00" + rng.randbytes(60),
                rng.randbytes(200),
                b"a: &x [*x]",
                b"- - -\n: :",
                b"NaN",
                b'{"kind":"Pod","kind":"Node"}',
                b'{"a":1e99999}',
                b"x" * 200_000,
            )
        )


def _places(node: Any) -> Any:
    if isinstance(node, dict):
        for key, value in node.items():
            yield node, key
            yield from _places(value)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield node, index
            yield from _places(value)


def _encoded(doc: Any) -> bytes:
    try:
        return orjson.dumps(doc)
    except TypeError:  # numbers beyond 64 bits
        import json

        return json.dumps(doc).encode()
