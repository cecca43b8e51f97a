"""A whole cluster in a test: Store, controllers, simulated kubelets and schedulers on virtual time.

    cluster = Harness(nodes=3)
    cluster.apply(deployment("web").replicas(5))
    cluster.run(10)
    assert len(cluster.bindings()) == 5

Nothing sleeps and nothing listens: a Harness is made in milliseconds, an hour in it takes as long as its work. The
same calls on a Harness with the same seed give the same cluster, to the byte. `serve()` opens it to kubectl and other
clients; from then on time passes as it does outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from time import sleep
from typing import TYPE_CHECKING, Any, Self

from fairlead.api.store.store import Store
from fairlead.controllers.housekeeping import choose_controllers, housekeepers
from fairlead.controllers.nodes.kubelet import Kubelet, PodScript, renewal_for
from fairlead.errors import NotFound
from fairlead.model import kinds
from fairlead.model.flow import Controller, Doc, DocView, PatchType, Verb, Write
from fairlead.runtime.virtual import Latencies, Perform, VirtualClock, VirtualRuntime
from fairlead.testing.builders import Builder, node

if TYPE_CHECKING:
    from fairlead.model.explanation import Explanation
    from fairlead.model.kinds import Kind
    from fairlead.runtime.questions import Answer
    from fairlead.testing.serving import Served

ControllerFactory = Callable[[DocView], Controller]
START = 1_767_225_600.0  # 2026-01-01T00:00:00Z: dates in failing tests shall look like dates


class Harness:
    def __init__(
        self,
        *,
        nodes: int | Iterable[Doc | Builder] = 0,
        schedulers: Sequence[ControllerFactory] | None = None,
        controllers: Sequence[ControllerFactory] = (),
        housekeeping: str = "all",
        script: PodScript | None = None,
        latencies: Latencies | None = None,
        perform: Perform | None = None,
        seed: int = 0,
        start: float = START,
    ) -> None:
        """`nodes` are a number of equal ones or documents; `schedulers` are the default one unless given, and an empty
        list for none; `controllers` are further ones; `housekeeping` chooses among the usual ones, as `fairlead up
        --controllers` does; `script` is what pods without instructions of their own do; `perform` carries out
        controllers' writes in place of the Store, which is how a test lets some of them fail."""
        self._clock = VirtualClock(start)
        self.store = Store(clock=self._clock, rng=Random(seed))
        names = choose_controllers(housekeeping)
        kubelet = Kubelet(self.store, rng=Random(seed + 1), default=script, renew_interval=renewal_for(names))
        self._served: Served | None = None
        self._schedulers: list[Controller] = (
            [_default_scheduler(seed)] if schedulers is None else [make(self.store) for make in schedulers]
        )
        others = [*(make(self.store) for make in controllers), *self._schedulers]
        self.runtime = VirtualRuntime(
            self.store,
            [*housekeepers(self.store, names=names), *others, kubelet],
            clock=self._clock,
            seed=seed + 2,
            latencies=latencies,
            perform=perform,
        )
        self.apply(*([node(f"node-{index}") for index in range(nodes)] if isinstance(nodes, int) else nodes))

    @classmethod
    def from_snapshot(cls, path: str | Path, **options: Any) -> Self:
        """A cluster as `fairlead snapshot save` found it, at the time it was saved unless `start` says otherwise."""
        from fairlead.api.store.snapshot import read_snapshot, restore
        from fairlead.model.times import seconds_of

        snapshot = read_snapshot(Path(path))
        cluster = cls(**{"start": seconds_of(snapshot.header["savedAt"]), **options})
        restore(cluster.store, snapshot)
        return cluster

    @property
    def now(self) -> float:
        return self._clock.now

    # Opening and closing

    def serve(self) -> Path:
        """Open the cluster to clients on this machine; returns a kubeconfig. Time passes by itself from now on."""
        if self._served is None:
            from fairlead.api.server.explaining import Explainer
            from fairlead.testing.serving import Served

            explainers = [partial(self.runtime.ask, one) for one in self._schedulers if isinstance(one, Explainer)]
            self._served = Served(self.store, self.runtime, explainers=explainers)
        return self._served.kubeconfig

    def close(self) -> None:
        if self._served is not None:
            served, self._served = self._served, None
            served.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def perform(self, write: Write) -> Doc:
        """Perform any Write."""
        if self._served is None:
            return self.store.perform(write)
        return self._served.call(lambda: self.store.perform(write))

    # Doing

    def apply(self, *objects: Doc | Builder) -> Doc:
        """Create each object, or merge it into the one that is there; returns the last as stored."""
        stored: Doc = {}
        for one in objects:
            stored = self._apply(one.doc() if isinstance(one, Builder) else one)
        return stored

    def _apply(self, doc: Doc) -> Doc:
        kind = self._kind(doc)
        namespace = doc["metadata"].get("namespace") or ("default" if kind.namespaced else "")
        name = doc["metadata"].get("name", "")
        if name and self.store.get(kind, namespace, name) is not None:
            dialect = PatchType.STRATEGIC if _is_built_in(kind) else PatchType.MERGE
            return self.perform(Write(Verb.PATCH, kind, namespace, name, body=doc, patch_type=dialect))
        return self.perform(Write(Verb.CREATE, kind, namespace, name, body=doc))

    def patch(self, kind: Kind, name: str, changes: Doc, *, namespace: str = "default") -> Doc:
        """Merge changes into an object."""
        return self.perform(Write(Verb.PATCH, kind, self._namespace(kind, namespace), name, body=changes))

    def delete(self, kind: Kind, name: str, *, namespace: str = "default", propagation: str = "") -> None:
        options = {"propagationPolicy": propagation} if propagation else None
        self.perform(Write(Verb.DELETE, kind, self._namespace(kind, namespace), name, body=options))

    def bind(self, name: str, node_name: str, *, namespace: str = "default") -> None:
        """Place a pod by hand."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node_name}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        self.perform(Write(Verb.CREATE, kinds.POD, namespace, name, body=body, subresource="binding"))

    # Waiting

    def run(self, seconds: float) -> None:
        """Let time pass."""
        if self._served is None:
            self.runtime.run(until=self.now + seconds)
        else:
            sleep(seconds)

    def settle(self) -> None:
        """Run everything that is due at this instant."""
        if self._served is None:
            self.runtime.settle()
        else:
            self._served.call(self.runtime.settle)

    def until(self, predicate: Callable[[], bool], *, limit: float = 3600.0) -> None:
        """Let time pass until something holds; an AssertionError if it does not within `limit` seconds."""
        if self._served is None:
            holds = self.runtime.run_until(predicate, limit=limit)
        else:
            end = self.now + limit
            while not (holds := predicate()) and self.now < end:
                sleep(0.01)
        if not holds:
            raise AssertionError(f"not true within {limit:g} s")

    # Looking

    def get(self, kind: Kind, name: str, *, namespace: str = "default") -> Doc | None:
        return self.store.get(kind, self._namespace(kind, namespace), name)

    def list(self, kind: Kind, *, namespace: str = "") -> Sequence[Doc]:
        return list(self.store.list(kind, namespace))

    def pod(self, name: str, *, namespace: str = "default") -> Doc:
        return self.store.read(kinds.POD, namespace, name)

    def node(self, name: str) -> Doc:
        return self.store.read(kinds.NODE, "", name)

    def phases(self, *, namespace: str = "") -> dict[str, str]:
        """Name to phase of all pods."""
        return {_short(pod): pod["status"]["phase"] for pod in self.store.list(kinds.POD, namespace)}

    def bindings(self, *, namespace: str = "") -> dict[str, str]:
        """Name (with the namespace, if it is not `default`) to node, of all pods that have one."""
        placed = (pod for pod in self.store.list(kinds.POD, namespace) if pod["spec"].get("nodeName"))
        return {_short(pod): pod["spec"]["nodeName"] for pod in placed}

    def explain(self, name: str, *, namespace: str = "default") -> Explanation | None:
        """Why a pod is where it is, or not yet anywhere, from the scheduler that knows it."""
        for scheduler in self._schedulers:
            explain: Callable[[str, str], Explanation | None] | None = getattr(scheduler, "explain", None)
            explanation = self._ask(scheduler, partial(explain, namespace, name)) if explain is not None else None
            if explanation is not None:
                return explanation
        return None

    def _ask(self, controller: Controller, question: Callable[[], Answer]) -> Answer:
        def ask() -> Answer:
            return self.runtime.ask(controller, lambda _: question()).result()

        return ask() if self._served is None else self._served.call(ask)

    def events(self, name: str, *, namespace: str = "default") -> Sequence[tuple[str, str]]:
        """Reason and message of the events about an object of this name."""
        return [
            (event.get("reason", ""), event.get("message", ""))
            for event in self.store.list(kinds.EVENT, namespace)
            if event["involvedObject"]["name"] == name
        ]

    def _kind(self, doc: Doc) -> Kind:
        kind = self.store.registry.by_kind(doc["apiVersion"], doc["kind"])
        if kind is None:
            raise NotFound(f'no matches for kind "{doc["kind"]}" in version "{doc["apiVersion"]}"')
        return kind

    def _namespace(self, kind: Kind, namespace: str) -> str:
        return namespace if kind.namespaced else ""


def _default_scheduler(seed: int) -> Controller:
    from fairlead.config.schedulers import default_scheduler

    return default_scheduler(seed=seed)


def _short(doc: Doc) -> str:
    namespace, name = doc["metadata"]["namespace"], doc["metadata"]["name"]
    return name if namespace == "default" else f"{namespace}/{name}"


def _is_built_in(kind: Kind) -> bool:
    return "." not in kind.group or kind.group.endswith(".k8s.io")
