"""HttpExtender: an extender that is asked over HTTP, in kube-scheduler's words.

It is the only plugin that needs a socket. Filter, prioritize and preempt are awaited inside the attempt, as in
the original, so a slow extender holds up scheduling and nothing else: attempts run in a thread of their own. A bind is
an Errand with a thread of its own, and the next pods are placed meanwhile.

The cluster keeps no documents; those that go into a request are taken from a DocView. Encoded nodes are kept as long as
their resourceVersion stands, because a request without nodeCacheCapable carries every candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from fairlead.client.threaded_work import ThreadedWork
from fairlead.core.framework.extender import Extended, Victims
from fairlead.core.model import kinds
from fairlead.core.model.reasons import SKIP, SUCCESS, Status, failed
from fairlead.errors import ExtenderError
from fairlead.kube.extenders.wire import ExtenderConnection, field_of

if TYPE_CHECKING:
    import ssl

    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.flow import Doc, DocView, Reply, Write
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster

SCALE = 10
"""An extender scores up to 10, a plugin up to 100."""
_BIND_LOOK = 0.01
"""How often a bind under way is looked after, in seconds."""


@dataclass(frozen=True, slots=True)
class ExtenderSpec:
    """What is known of an extender; an empty verb is one that it does not have."""

    url: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    timeout: float = 5.0
    node_cache_capable: bool = False
    managed_resources: frozenset[str] = frozenset()
    ignorable: bool = False
    tls: ssl.SSLContext | None = None
    server_name: str = ""


class HttpExtender:
    """One extender, for all profiles."""

    def __init__(self, spec: ExtenderSpec, view: DocView) -> None:
        self._spec = spec
        self._view = view
        self._wire = ExtenderConnection(spec.url, timeout=spec.timeout, tls=spec.tls, server_name=spec.server_name)
        self._encoded: dict[str, tuple[str, orjson.Fragment]] = {}
        self.outside = ThreadedWork()
        self.name = spec.url
        self.ignorable = spec.ignorable
        self.filters = bool(spec.filter_verb)
        self.prioritizes = bool(spec.prioritize_verb)
        self.preempts = bool(spec.preempt_verb)
        self.binds = bool(spec.bind_verb)

    def __repr__(self) -> str:
        return f"<HttpExtender {self.name}>"

    def close(self) -> None:
        self._wire.close()

    def interested(self, pod: Pod) -> bool:
        """Whether it manages nothing in particular, or something that the pod requests."""
        managed = self._spec.managed_resources
        return not managed or not managed.isdisjoint(pod.shape.exact_request)

    # ---- the verbs that an attempt waits for ----

    def filter(self, cycle: Cycle, rows: NDArray[np.int32]) -> Extended:
        answer = _record(self._wire.post(self._spec.filter_verb, self._candidates(cycle, rows)))
        if error := field_of(answer, "Error"):
            raise ExtenderError(str(error))
        row_of = cycle.cluster.table.row_of
        asked = set(rows.tolist())
        left = [self._known_row(cycle, name, asked) for name in self._names_left(answer)]
        final, plain = _messages(answer, "FailedAndUnresolvableNodes"), _messages(answer, "FailedNodes")
        refused = {
            row_of[name]: (message, name in final) for name, message in (plain | final).items() if name in row_of
        }
        return Extended(np.array(left, dtype=np.int32), refused)

    def prioritize(self, cycle: Cycle, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        answer = self._wire.post(self._spec.prioritize_verb, self._candidates(cycle, rows))
        scores: dict[str, int] = {}
        for entry in _sequence(answer):
            host, score = field_of(entry, "Host"), field_of(entry, "Score") or 0
            if not isinstance(host, str) or not isinstance(score, int):
                raise ExtenderError(f"extender {self.name}: {entry!r} is not a score")
            scores[host] = scores.get(host, 0) + score
        name = cycle.cluster.table.name
        column = np.array([scores.get(name(int(row)), 0) for row in rows], dtype=np.int64)
        return column * (self._spec.weight * SCALE)

    def preempt(self, cycle: Cycle, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        answer = _record(self._wire.post(self._spec.preempt_verb, self._offer(cycle.pod, victims)))
        kept: dict[str, Victims] = {}
        for node, meta in (field_of(answer, "NodeNameToMetaVictims") or {}).items():
            chosen = self._victims_on(cycle.cluster, node, meta or {})
            if chosen.pods:
                kept[node] = chosen
            elif not self.ignorable:
                raise ExtenderError(f'expected at least one victim pod on node "{node}"')
        return kept

    # ---- the verb that nobody waits for ----

    def bind(self, cycle: Cycle, row: int) -> BindErrand:
        pod = cycle.pod
        body = {
            "PodName": pod.name,
            "PodNamespace": pod.namespace,
            "PodUID": pod.uid,
            "Node": cycle.cluster.table.name(row),
        }
        return BindErrand(self._wire, self._spec.bind_verb, body, ignorable=self.ignorable, outside=self.outside)

    # ---- requests ----

    def _candidates(self, cycle: Cycle, rows: NDArray[np.int32]) -> Doc:
        names = [cycle.cluster.table.name(int(row)) for row in rows]
        if self._spec.node_cache_capable:
            return {"Pod": self._pod(cycle.pod), "Nodes": None, "NodeNames": names}
        nodes = [self._node(cycle, row, name) for row, name in zip(rows.tolist(), names, strict=True)]
        return {"Pod": self._pod(cycle.pod), "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}

    def _offer(self, pod: Pod, victims: Mapping[str, Victims]) -> Doc:
        offer: Doc = {"Pod": self._pod(pod), "NodeNameToVictims": None, "NodeNameToMetaVictims": None}
        if self._spec.node_cache_capable:
            offer["NodeNameToMetaVictims"] = {
                node: {"Pods": [{"UID": victim.uid} for victim in v.pods], "NumPDBViolations": v.violations}
                for node, v in victims.items()
            }
        else:
            offer["NodeNameToVictims"] = {
                node: {"Pods": [self._pod(victim) for victim in v.pods], "NumPDBViolations": v.violations}
                for node, v in victims.items()
            }
        return offer

    def _pod(self, pod: Pod) -> Doc:
        doc = self._view.get(kinds.POD, pod.namespace, pod.name)
        if doc is None or doc["metadata"].get("uid") != pod.uid:
            raise ExtenderError(f'extender {self.name}: pod "{pod.key}" is gone')
        return _as_sent(doc)

    def _node(self, cycle: Cycle, row: int, name: str) -> orjson.Fragment:
        node = cycle.cluster.table.nodes[row]
        version = node.resource_version if node is not None else ""
        known = self._encoded.get(name)
        if known is not None and known[0] == version:
            return known[1]
        doc = self._view.get(kinds.NODE, "", name)
        if doc is None:
            raise ExtenderError(f'extender {self.name}: node "{name}" is gone')
        encoded = orjson.Fragment(orjson.dumps(_as_sent(doc)))
        self._forget_nodes_that_are_gone(cycle.cluster)
        self._encoded[name] = (doc["metadata"].get("resourceVersion", ""), encoded)
        return encoded

    def _forget_nodes_that_are_gone(self, cluster: Cluster) -> None:
        row_of = cluster.table.row_of
        if len(self._encoded) > 2 * len(row_of) + 16:
            self._encoded = {name: known for name, known in self._encoded.items() if name in row_of}

    # ---- answers ----

    def _names_left(self, answer: Doc) -> Iterable[str]:
        names = field_of(answer, "NodeNames")
        if self._spec.node_cache_capable and names is not None:
            return _sequence(names)
        nodes = field_of(answer, "Nodes")
        if nodes is None:
            return ()
        return [str((field_of(item, "metadata") or {}).get("name")) for item in field_of(nodes, "items") or ()]

    def _known_row(self, cycle: Cycle, name: str, asked: set[int]) -> int:
        row = cycle.cluster.table.row_of.get(name)
        if row is None or (self._spec.node_cache_capable and row not in asked):
            raise ExtenderError(
                f'extender "{self.name}" claims a filtered node "{name}" which is not found in the input node list'
            )
        return row

    def _victims_on(self, cluster: Cluster, node: str, meta: Doc) -> Victims:
        row = cluster.table.row_of.get(node)
        if row is None:
            raise ExtenderError(f'nodeinfo not found for node name "{node}"')
        here = {pod.uid: pod for pod in cluster.table.pods[row]}
        chosen = []
        for entry in field_of(meta, "Pods") or ():
            uid = field_of(entry, "UID")
            if uid not in here:
                raise ExtenderError(
                    f"extender: {self.name} claims to preempt pod (UID: {uid}) on node: {node}, "
                    "but the pod is not found on that node"
                )
            chosen.append(here[uid])
        return Victims(tuple(chosen), int(field_of(meta, "NumPDBViolations") or 0))


class BindErrand:
    """One bind on its way, in a thread of its own. An error of an extender that may be ignored leaves the bind to the
    next one. The outcome is looked at in fixed steps only, so that it takes the same virtual time in every run."""

    def __init__(
        self, wire: ExtenderConnection, verb: str, body: Doc, *, ignorable: bool, outside: ThreadedWork
    ) -> None:
        self._wire, self._verb, self._body, self._ignorable = wire, verb, body, ignorable
        self._outside = outside
        self._outcome: Status | None = None
        self._look_at = 0.0

    def start(self, now: float) -> list[Write]:
        self._look_at = now + _BIND_LOOK
        self._outside.begin(self._run, name=f"bind {self._body['PodName']}")
        return []

    def progress(self, now: float, cluster: Cluster, replies: Sequence[Reply]) -> Status | None:
        if now < self._look_at:
            return None
        self._look_at = now + _BIND_LOOK
        return self._outcome

    def wake_at(self) -> float | None:
        return self._look_at

    def _run(self) -> None:
        try:
            error = field_of(_record(self._wire.post(self._verb, self._body)), "Error")
            self._outcome = self._failure(str(error)) if error else SUCCESS
        except Exception as error:
            self._outcome = self._failure(str(error))

    def _failure(self, words: str) -> Status:
        return SKIP if self._ignorable else failed(words)


def _as_sent(doc: Doc) -> Doc:
    """The object as the original sends it: without its type, and without who manages which field."""
    metadata = {key: value for key, value in doc["metadata"].items() if key != "managedFields"}
    return {key: value for key, value in doc.items() if key not in ("apiVersion", "kind", "metadata")} | {
        "metadata": metadata
    }


def _record(answer: Any) -> Doc:
    if not isinstance(answer, dict):
        raise ExtenderError(f"the extender's answer is not an object: {str(answer)[:100]}")
    return answer


def _sequence(answer: Any) -> Sequence[Any]:
    if answer is not None and not isinstance(answer, list):
        raise ExtenderError(f"the extender's answer is not a list: {str(answer)[:100]}")
    return answer or ()


def _messages(answer: Doc, name: str) -> dict[str, str]:
    return {str(node): str(message) for node, message in (field_of(answer, name) or {}).items()}
