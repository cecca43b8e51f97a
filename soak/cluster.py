"""The API server, spoken to directly with the standard library: making nodes and pods, listing, watching, deleting."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

Doc = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "scheduling.k8s.io/group-name"
Call = tuple[str, str, Any]
_DONE = {"POST": 409, "DELETE": 404}
"""What the API server answers to a request that it has carried out before."""


@dataclass
class Cluster:
    server: str
    token: str
    _local: threading.local = field(default_factory=threading.local)
    _pools: dict[int, ThreadPoolExecutor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE

    def call(self, method: str, path: str, body: Any = None, *, patience: float = 180.0) -> Doc:
        """One request, repeated while the server is away. A refusal is an HTTPError, unless it says that an earlier try
        had come through after all."""
        ends, repeated = time.monotonic() + patience, False
        while True:
            try:
                return self._once(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                if repeated and isinstance(error, urllib.error.HTTPError) and error.code == _DONE.get(method):
                    return {}
                repeated = True
                again = not isinstance(error, urllib.error.HTTPError) or error.code in (429, 500, 503, 504)
                if not again or time.monotonic() > ends:
                    raise
                self._local.connection = None
                time.sleep(0.2)

    def _once(self, method: str, path: str, body: Any) -> Doc:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            host = urllib.parse.urlsplit(self.server).netloc
            connection = self._local.connection = http.client.HTTPSConnection(host, context=self._tls, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise urllib.error.HTTPError(path, answer.status, content.decode(errors="replace"), answer.headers, None)
        doc: Doc = json.loads(content)
        return doc

    def many(self, calls: list[Call], *, at_once: int = 16) -> None:
        """Requests in parallel. Threads are kept for the next time, and so are their connections."""
        pool = self._pools.get(at_once)
        if pool is None:
            pool = self._pools[at_once] = ThreadPoolExecutor(at_once)
        list(pool.map(lambda one: self.call(*one), calls))

    def watch(self, path: str, version: str) -> Iterator[Doc]:
        """Events from a version on, until the connection ends."""
        url = f"{self.server}{path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, context=self._tls, timeout=120) as stream:
            for line in stream:
                yield json.loads(line)

    # ---- objects ----

    def make_nodes(self, count: int, *, cpu: str = "8", prefix: str = "node") -> None:
        self.many([("POST", "/api/v1/nodes", node(f"{prefix}-{at}", cpu)) for at in range(count)])

    def make_pods(self, names: list[str], **more: Any) -> None:
        self.many([("POST", PODS, pod(name, **more)) for name in names])

    def pods(self) -> list[Doc]:
        items: list[Doc] = self.call("GET", "/api/v1/pods?resourceVersion=0")["items"]
        return items

    def define(self, definitions: list[Doc]) -> None:
        """Custom resources, served when this returns."""
        for doc in definitions:
            self.call("POST", DEFINITIONS, doc)
        ends = time.monotonic() + 60
        for doc in definitions:
            while not self._is_established(doc["metadata"]["name"]):
                if time.monotonic() > ends:
                    raise TimeoutError(f"{doc['metadata']['name']} is not established")
                time.sleep(0.1)

    def _is_established(self, name: str) -> bool:
        conditions = self.call("GET", f"{DEFINITIONS}/{name}").get("status", {}).get("conditions")
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions or ())

    def make_queue(self, name: str) -> None:
        """A queue that is open, which is otherwise the work of a controller that does not run here."""
        kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        self.call("POST", QUEUES, {**kind, "metadata": {"name": name}, "spec": {"weight": 1}})
        self.call("PATCH", f"{QUEUES}/{name}/status", {"status": {"state": "Open"}})

    def delete(self, name: str) -> None:
        try:
            self.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise

    def wait_bound(self, names: list[str], seconds: float, *, pause: float = 0.25) -> float:
        """Until all of these have nodes; the answer is how long it took. A TimeoutError names who has none."""
        began = time.monotonic()
        wanted = set(names)
        while True:
            bound = {doc["metadata"]["name"] for doc in self.pods() if doc["spec"].get("nodeName")}
            if wanted <= bound:
                return time.monotonic() - began
            if time.monotonic() - began > seconds:
                raise TimeoutError(f"{len(wanted - bound)} pods have no node: {sorted(wanted - bound)[:5]}")
            time.sleep(pause)


def node(name: str, cpu: str = "8", **more: Any) -> Doc:
    room = {"cpu": cpu, "memory": "64Gi", "pods": "110", **more}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": room, "allocatable": room, "conditions": ready},
    }


def pod(
    name: str, *, cpu: str = "100m", scheduler: str = "default-scheduler", group: str = "", priority: str = ""
) -> Doc:
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    metadata: Doc = {"name": name, "namespace": "default"}
    spec: Doc = {"schedulerName": scheduler, "containers": [container], "terminationGracePeriodSeconds": 0}
    if priority:
        spec["priorityClassName"] = priority
    if group:
        metadata["annotations"] = {GROUP: group}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def priority_class(name: str, value: int) -> Doc:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def pod_group(name: str, minimum: int, *, priority: str = "") -> Doc:
    spec = {"minMember": minimum, "queue": "default", **({"priorityClassName": priority} if priority else {})}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def gone_at_once(name: str) -> Call:
    """The deletion of a pod without a grace period."""
    return ("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
