"""EvictionLedger: who was evicted, when, for whom and at what cost; kept after the pods are gone.

Every deletion of a pod that a step writes is an eviction, whichever mode decided it, so the ledger reads the step's
writes and nothing else has to report to it. The note of such a write says for whose sake.

So that a restart does not forget them, the newest are also written into a ConfigMap, with the deletions themselves and
in the same step; a scheduler that starts reads it. A process that is killed between the two requests may leave an
eviction out, or write down one whose deletion was not sent.

Invariant: at most `_KEPT` evictions are kept in memory and `_WRITTEN` in the ConfigMap, the newest.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

from fairlead.core.engine.what_if.victims import lost_work
from fairlead.core.model import kinds
from fairlead.core.model.figures import EvictedPod
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.records import record
from fairlead.core.model.times import micro_timestamp
from fairlead.errors import AlreadyExists, Forbidden, NotFound

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, Reply
    from fairlead.core.state.cluster import Cluster

_KEPT = 10_000
_WRITTEN = 1_000
"""Evictions in the ConfigMap: about 300 bytes each, of the megabyte that one may have."""
CONFIG_MAP = ("kube-system", "fairlead-evictions")
"""Namespace and name of the ConfigMap, unless set otherwise."""
_DELETE = Verb.DELETE
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""
_NOTE = "evictions"


@record(frozen=True, slots=True)
class EvictionRecord:
    """One eviction. `beneficiary` is `namespace/name` of the pod or group that room was made for, if that is known."""

    at: float
    namespace: str
    name: str
    uid: str
    priority: int
    node: str
    owner: str
    scheduler: str
    beneficiary: str
    rule: str
    lost: float

    def to_document(self, namespace: str = "") -> Doc:
        """The JSON form. A question about one namespace does not show the names of others."""
        other = namespace and self.beneficiary and not self.beneficiary.startswith(f"{namespace}/")
        return {
            "at": micro_timestamp(self.at),
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "priority": self.priority,
            "node": self.node,
            "owner": self.owner,
            "scheduler": self.scheduler,
            "beneficiary": "in another namespace" if other else self.beneficiary,
            "rule": self.rule,
            "lostSeconds": round(self.lost, 3),
        }


class EvictionLedger:
    def __init__(self, place: tuple[str, str] | None = None) -> None:
        """`place` is the namespace and name of the ConfigMap; None keeps them in memory only."""
        self._kept: deque[EvictionRecord] = deque(maxlen=_KEPT)
        self.place = place
        self._unread: deque[EvictionRecord] = deque(maxlen=_KEPT)
        self.counts: Counter[str] = Counter()
        """How many this process evicted, by rule."""
        self._written: deque[str] = deque()
        """Keys of the ConfigMap's data, the oldest first."""
        self._exists = False
        self._unwritten: dict[str, str] = {}
        """Entries of a ConfigMap that could not be created because there is one."""

    def note(self, writes: Sequence[Write], cluster: Cluster, now: float) -> list[Write]:
        """Take down the evictions among what a step writes. Returns what to write so that they are not forgotten."""
        new: list[EvictionRecord] = []
        for write in [write for write in writes if write.verb is _DELETE]:
            if write.kind is not kinds.POD or not isinstance(write.body, dict):
                continue
            pod_state = cluster.pods.get((write.body.get("preconditions") or {}).get("uid", ""))
            if pod_state is None:
                continue
            pod = pod_state.seen
            beneficiary, rule = write.note if isinstance(write.note, tuple) else ("", "")
            owner = "" if pod.owner is None else f"{pod.owner.kind}/{pod.owner.name}"
            new.append(
                EvictionRecord(
                    now,
                    pod.namespace,
                    pod.name,
                    pod.uid,
                    pod.priority,
                    pod.node_name,
                    owner,
                    pod.scheduler_name,
                    beneficiary,
                    rule,
                    lost_work(pod, now),
                )
            )
        self._kept.extend(new)
        self._unread.extend(new)
        self.counts.update(one.rule for one in new)
        return [self._write(new)] if new and self.place is not None else []

    def _write(self, new: Sequence[EvictionRecord]) -> Write:
        assert self.place is not None
        namespace, name = self.place
        if not self._exists:
            self._exists = True
            newest = list(self._kept)[-_WRITTEN:]
            self._written = deque(map(_key, newest))
            data = {_key(one): _text(one) for one in newest}
            body: Doc = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
            return Write(Verb.CREATE, kinds.CONFIG_MAP, namespace, name, body=body, note=_NOTE)
        changed: dict[str, str | None] = {**self._unwritten, **{_key(one): _text(one) for one in new[-_WRITTEN:]}}
        self._unwritten = {}
        self._written.extend(changed)
        while len(self._written) > _WRITTEN:
            changed[self._written.popleft()] = None
        return Write(Verb.PATCH, kinds.CONFIG_MAP, namespace, name, body={"data": changed}, note=_NOTE)

    def take_replies(self, replies: Sequence[Reply]) -> None:
        """What became of the ConfigMap: it may exist already, somebody may have deleted it, or we may not write it."""
        for reply in replies if self.place is not None else ():
            if reply.error is None or reply.write.note != _NOTE:
                continue
            if isinstance(reply.error, AlreadyExists):
                self._unwritten = dict(reply.write.body["data"])
            elif isinstance(reply.error, NotFound):
                self._exists = False
            elif isinstance(reply.error, Forbidden):
                self.place = None

    def restore(self, document: Doc | None) -> None:
        """Take over what a process before this one wrote down. Entries that cannot be read are left out."""
        self._exists = document is not None
        data: Mapping[str, str] = (document or {}).get("data") or {}
        found = [one for text in data.values() if (one := _record(text)) is not None]
        known = {(one.uid, one.at) for one in found}
        found += [one for one in self._kept if (one.uid, one.at) not in known]
        found.sort(key=lambda one: one.at)
        self._kept = deque(found, maxlen=_KEPT)
        self._written = deque(sorted(data))

    def take_new(self) -> tuple[EvictedPod, ...]:
        """The evictions since this was last asked, for the log."""
        found = []
        while self._unread:
            one = self._unread.popleft()
            where = f"{one.namespace}/{one.name}"
            found.append(EvictedPod(where, one.node, one.beneficiary, one.rule, one.priority, one.lost))
        return tuple(found)

    def of(self, namespace: str = "") -> Iterator[EvictionRecord]:
        """The evictions of a namespace, or of all, the newest first."""
        return (one for one in reversed(self._kept) if not namespace or one.namespace == namespace)


def _key(one: EvictionRecord) -> str:
    """Keys of a ConfigMap sort by time."""
    return f"{int(one.at * 1000):013d}.{one.uid}"


def _text(one: EvictionRecord) -> str:
    return json.dumps(astuple(one), separators=(",", ":"), ensure_ascii=False)


def _record(text: str) -> EvictionRecord | None:
    try:
        at, namespace, name, uid, priority, node, owner, scheduler, beneficiary, rule, lost = json.loads(text)
        return EvictionRecord(
            float(at),
            str(namespace),
            str(name),
            str(uid),
            int(priority),
            str(node),
            str(owner),
            str(scheduler),
            str(beneficiary),
            str(rule),
            float(lost),
        )
    except (ValueError, TypeError):
        return None
