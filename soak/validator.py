"""What must hold, from the API server's own record of pods: nothing of a scheduler is believed or imported.

It follows the watch directly. Who held the lease when is what the API server answered to those who asked for it, as the
proxies saw it. A watch shows everything in the order in which it happened, so room is counted after
every change: a node that held too much for a moment is found too.
"""

from __future__ import annotations

import math
import threading
import time
import urllib.error
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from soak.cluster import GROUP
from soak.proxy import Passed, about

if TYPE_CHECKING:
    from soak.cluster import Cluster, Doc

_SUFFIXES: dict[str, Fraction | int] = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "k": 10**3, "M": 10**6, "G": 10**9,
    "T": 10**12, "P": 10**15, "E": 10**18, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip


_NO_WRITES = ("leases", "selfsubjectrulesreviews", "selfsubjectaccessreviews")
"""What an instance may POST before it leads: for the lease, and to ask which rights it has."""


FOR_NOBODY = 1
"""How many victims more than needed are no problem."""


@dataclass
class Seen:
    name: str
    node: str = ""
    cpu: int = 0
    group: str = ""
    ended: bool = False
    appeared: float = 0.0
    bound: float = 0.0
    changes: int = 0


@dataclass
class Verdict:
    moved: list[str] = field(default_factory=list)
    overcommitted: list[str] = field(default_factory=list)
    unbound: list[str] = field(default_factory=list)
    half_gangs: list[str] = field(default_factory=list)
    without_lease: list[str] = field(default_factory=list)
    evicted_for_nobody: list[str] = field(default_factory=list)
    """Victims beyond those that preemptors needed. One in a run is reported and is no problem: a deletion at which the
    API server fails three times in a row is given up, and other victims are looked for. (kube-scheduler evicts four to
    six too many in the same run.)"""
    too_much: list[str] = field(default_factory=list)
    """Figures that are above their bar."""
    inconsistent: list[str] = field(default_factory=list)
    """What the scheduler itself found wrong with its cache, or did not say of it."""

    @property
    def problems(self) -> list[str]:
        kinds = ["moved", "overcommitted", "unbound", "half_gangs", "without_lease", "too_much", "inconsistent"]
        if len(self.evicted_for_nobody) > FOR_NOBODY:
            kinds.append("evicted_for_nobody")
        return [f"{kind.replace('_', ' ')}: {one}" for kind in kinds for one in getattr(self, kind)[:5]]

    def line(self) -> str:
        return (
            f"lost {len(self.unbound)}, moved {len(self.moved)}, overcommitted {len(self.overcommitted)}, "
            f"half gangs {len(self.half_gangs)}, writes without the lease {len(self.without_lease)}, "
            f"evicted for nobody {len(self.evicted_for_nobody)}"
        )


class Validator:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.pods: dict[str, Seen] = {}
        self._used: Counter[str] = Counter()
        self._room: dict[str, int] = {}
        self._verdict = Verdict()
        self._ending = threading.Event()

    def start(self) -> None:
        self._room = {
            doc["metadata"]["name"]: milli(doc["status"]["allocatable"]["cpu"])
            for doc in self._cluster.call("GET", "/api/v1/nodes")["items"]
        }
        threading.Thread(target=self._follow, args=("/api/v1/pods", self._take_pod), daemon=True).start()

    def stop(self) -> None:
        self._ending.set()

    def _follow(self, path: str, take: Callable[[str, Doc], None]) -> None:
        version = ""
        while not self._ending.is_set():
            try:
                if not version:
                    listed = self._cluster.call("GET", path)
                    version = listed["metadata"]["resourceVersion"]
                    for doc in listed["items"]:
                        take("ADDED", doc)
                for event in self._cluster.watch(path, version):
                    if event["type"] == "ERROR":
                        version = ""
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        take(event["type"], event["object"])
                    if self._ending.is_set():
                        return
            except (OSError, ValueError, urllib.error.HTTPError):
                time.sleep(0.2)

    def _take_pod(self, happened: str, doc: Doc) -> None:
        metadata, node = doc["metadata"], doc["spec"].get("nodeName", "")
        seen = self.pods.get(metadata["uid"])
        if seen is None:
            seen = self.pods[metadata["uid"]] = Seen(
                metadata["name"],
                cpu=_asked(doc),
                group=(metadata.get("annotations") or {}).get(GROUP, ""),
                appeared=time.time(),
            )
        seen.changes += 1
        if seen.node and node != seen.node:
            self._verdict.moved.append(f"{seen.name} from {seen.node} to {node or 'nowhere'}")
        if node and not seen.node and not seen.ended:
            seen.node, seen.bound = node, time.time()
            self._used[node] += seen.cpu
            if node in self._room and self._used[node] > self._room[node]:
                self._verdict.overcommitted.append(f"{node} holds {self._used[node]}m of {self._room[node]}m")
        ended = happened == "DELETED" or doc.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if ended and not seen.ended:
            seen.ended = True
            if seen.node:
                self._used[seen.node] -= seen.cpu

    def bound_at(self, name: str) -> float:
        """When a pod was seen to have a node, which may be a moment later than a list shows it."""
        ends = time.monotonic() + 10
        while time.monotonic() < ends:
            for seen in [*self.pods.values()]:
                if seen.name == name and seen.bound:
                    return seen.bound
            time.sleep(0.02)
        raise TimeoutError(f"no watch showed {name}'s node")

    # ---- at the end ----

    def verdict(
        self,
        *,
        expected: Collection[str] = (),
        minimums: dict[str, int] | None = None,
        logs: Collection[list[Passed]] = (),
    ) -> Verdict:
        """`expected` pods must have nodes by now; of a gang at least its minimum, or nobody; `logs` are what instances
        sent that took turns in leading."""
        alive = [seen for seen in self.pods.values() if not seen.ended]
        bound = {seen.name for seen in alive if seen.node}
        self._verdict.unbound = sorted(set(expected) - bound)
        gangs: dict[str, list[Seen]] = defaultdict(list)
        for seen in alive:
            gangs[seen.group].append(seen)
        for group, minimum in (minimums or {}).items():
            started = sum(1 for seen in gangs.get(group, ()) if seen.node)
            if 0 < started < minimum:
                self._verdict.half_gangs.append(f"{group}: {started} of {minimum}")
        turns = _turns(logs)
        for log in logs:
            self._verdict.without_lease += [
                f"{one.sender or 'a candidate'}: {one.method} {about(one.path)} at {one.arrived:.2f}"
                for one in log
                if one.method != "GET"
                and one.status
                and about(one.path) not in _NO_WRITES
                and not _held(turns, one.sender, one.arrived)
            ]
        return self._verdict


def _turns(logs: Collection[list[Passed]]) -> list[tuple[float, str]]:
    """Who took or renewed the lease when, as the proxies saw the API server agree."""
    return sorted(
        (one.at, one.sender)
        for log in logs
        for one in log
        if about(one.path) == "leases" and one.method in ("PUT", "POST") and one.status in (200, 201)
    )


def _held(turns: list[tuple[float, str]], sender: str, at: float) -> bool:
    """Whether an instance was the last to take the lease by then."""
    last = bisect_right(turns, (at, "\U0010ffff")) - 1
    return last >= 0 and turns[last][1] == sender


def _asked(doc: Doc) -> int:
    containers = doc["spec"]["containers"]
    return sum(milli(one.get("resources", {}).get("requests", {}).get("cpu", "0")) for one in containers)


def milli(text: str) -> int:
    """Thousandths, rounded up, of a quantity as the API writes them: 2, 100m, 1e3, 0.5, 1Ki."""
    for suffix, factor in sorted(_SUFFIXES.items(), key=lambda one: -len(one[0])):
        if text.endswith(suffix):
            return math.ceil(Fraction(text[: -len(suffix)]) * factor * 1000)
    return math.ceil(Fraction(text) * 1000)
