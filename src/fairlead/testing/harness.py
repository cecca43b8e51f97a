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

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, Self

from fairlead.assembly.cluster import ClusterAssembly
from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.cluster.housekeeping import choose_controllers
from fairlead.cluster.store.schema import is_custom
from fairlead.cluster.store.store import DECODED_DOCUMENTS, HISTORY_EVENTS, StoreLimits
from fairlead.core.model import kinds
from fairlead.core.model.flow import Controller, Doc, DocView, PatchType, Verb, Write
from fairlead.errors import ConfigError, NotFound
from fairlead.runtime.virtual import Latencies, Perform, VirtualClock
from fairlead.testing.builders import Builder, node
from fairlead.testing.pod_times import PodTimes, PodWatch

if TYPE_CHECKING:
    from fairlead.cluster.kubelets.pod_script import PodScript
    from fairlead.cluster.store.store import Store
    from fairlead.core.engine.what_if.simulate import Forecast
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.model.explanation import Explanation
    from fairlead.core.model.kinds import Kind
    from fairlead.runtime.questions import Answer
    from fairlead.testing.serving import Served

ControllerFactory = Callable[[DocView], Controller]
_SHORT_HISTORY = 1_000
_ALL_DOCUMENTS = None
"""The Store of an experiment keeps all documents decoded. Each pod is written again when it starts and when it ends,
however much later that is, so that its document is worth its memory as long as the pod lives."""
START = 1_767_225_600.0  # 2026-01-01T00:00:00Z: dates in failing tests shall look like dates


class Harness:
    """A cluster on virtual time. It can be used in a `with` statement, which closes what `serve` opened."""

    def __init__(
        self,
        *,
        nodes: int | Iterable[Doc | Builder] = 0,
        config: str | Path | Doc | None = None,
        volcano: str | Path | None = None,
        plugins: Sequence[Plugin] = (),
        schedulers: SchedulerAssembly | Sequence[ControllerFactory] | None = None,
        controllers: Sequence[ControllerFactory] = (),
        housekeeping: str = "all",
        script: PodScript | None = None,
        latencies: Latencies | None = None,
        perform: Perform | None = None,
        seed: int = 0,
        start: float = START,
        records: bool = True,
    ) -> None:
        """Make a cluster with nodes, the usual controllers and one scheduler.

        Args:
            nodes: How many equal nodes (`node-0` and so on, 8 cores and 32Gi each), or builders or documents of nodes.
            config: The scheduler's configuration: the path of a KubeSchedulerConfiguration, or one as a document,
                in which apiVersion and kind may be missing.
            volcano: The path of a Volcano configuration, or a preset (`default`, `shipped`, `kube-batch`): pods of
                schedulerName `volcano` are then scheduled with the Volcano profile.
            plugins: Plugin objects that take part beside those of the configuration.
            schedulers: A SchedulerAssembly, or functions that make schedulers, in the place of the one that the three
                before describe; an empty list for a cluster without a scheduler.
            controllers: Functions that make further controllers, each from a read-only view of the cluster.
            housekeeping: Which of the usual controllers run, as `fairlead up --controllers` takes it.
            script: What pods without annotations of their own do.
            latencies: How long writes and watches take; no time at all unless given.
            perform: Carries out controllers' writes in the place of the API, so that a test can let some fail.
            seed: Where all randomness comes from.
            start: The time at which the cluster begins, in seconds since the epoch.
            records: Whether to keep what is only read afterwards: Events, the times of pods and old versions of
                objects. Experiments with very many pods do without.

        Raises:
            ConfigError: An argument or a configuration cannot be used.
        """
        self._clock = VirtualClock(start)
        if schedulers is None:
            schedulers = _assembly(config, volcano, plugins, seed)
        elif config is not None or volcano is not None or plugins:
            raise ConfigError("config, volcano and plugins describe a scheduler, and schedulers replaces it")
        own, factories = (schedulers, None) if isinstance(schedulers, SchedulerAssembly) else (None, schedulers)
        assembly = ClusterAssembly(own, names=choose_controllers(housekeeping), seed=seed)
        history, decoded = (HISTORY_EVENTS, DECODED_DOCUMENTS) if records else (_SHORT_HISTORY, _ALL_DOCUMENTS)
        self.store = assembly.store(self._clock, limits=StoreLimits(history=history, decoded=decoded))
        self._served: Served | None = None
        self._pod_watch = PodWatch(self.store, self._clock) if records else None
        self.assembled = assembly.over(
            self.store,
            schedulers=None if factories is None else [make(self.store) for make in factories],
            others=[make(self.store) for make in controllers],
            script=script,
        )
        self.runtime = self.assembled.virtual(
            self._clock,
            latencies=latencies,
            perform=perform if records else partial(_without_events, self.store, perform),
        )
        self.apply(*_nodes(nodes))

    @classmethod
    def from_snapshot(cls, path: str | Path, **options: Any) -> Self:
        """A cluster as `fairlead snapshot save` found it, at the time it was saved unless `start` says otherwise.
        `options` are those of a Harness. Its nodes are simulated."""
        from fairlead.cluster.store.snapshot import read_snapshot, restore
        from fairlead.core.model.times import seconds_of

        snapshot = read_snapshot(Path(path))
        cluster = cls(**{"start": seconds_of(snapshot.header["savedAt"]), **options})
        restore(cluster.store, snapshot)
        return cluster

    @property
    def now(self) -> float:
        """The cluster's time, in seconds since the epoch."""
        return self._clock.now

    # Opening and closing

    def serve(self) -> Path:
        """Open the cluster to clients on this machine; returns a kubeconfig. Time passes by itself from now on."""
        if self._served is None:
            from fairlead.assembly.asking import answerer
            from fairlead.cluster.server.explaining import Explainer
            from fairlead.testing.serving import Served

            explaining = [one for one in self.assembled.schedulers if isinstance(one, Explainer)]
            explainers = [partial(self.runtime.ask, one) for one in explaining]
            answerers = [answerer(ask, lambda: self.now) for ask in explainers]
            self._served = Served(self.assembled, self.runtime, explainers=explainers, answerers=answerers)
        return self._served.kubeconfig

    def close(self) -> None:
        """Stop serving. Raises what went wrong meanwhile, if anything did."""
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

    def apply(self, *objects: Doc | Builder | str | Path) -> Doc:
        """Create each object, or merge it into the one that is there; returns the last as stored. Objects are
        documents, builders, or paths of manifests: a YAML or JSON file, or a directory of such files."""
        stored: Doc = {}
        for one in objects:
            for doc in _documents(one):
                stored = self._apply(doc)
        return stored

    def _apply(self, doc: Doc) -> Doc:
        kind = self._kind(doc)
        namespace = doc["metadata"].get("namespace") or ("default" if kind.namespaced else "")
        name = doc["metadata"].get("name", "")
        if name and self.store.get(kind, namespace, name) is not None:
            dialect = PatchType.MERGE if is_custom(kind) else PatchType.STRATEGIC
            return self.perform(Write(Verb.PATCH, kind, namespace, name, body=doc, patch_type=dialect))
        return self.perform(Write(Verb.CREATE, kind, namespace, name, body=doc))

    def patch(self, kind: Kind | str, name: str, changes: Doc, *, namespace: str = "default") -> Doc:
        """Merge changes into an object; returns it as stored. Kinds have the names that kubectl knows: `pod`, `deploy`,
        `jobs.batch.volcano.sh`."""
        kind = self.kind(kind)
        return self.perform(Write(Verb.PATCH, kind, self._namespace(kind, namespace), name, body=changes))

    def delete(self, kind: Kind | str, name: str, *, namespace: str = "default", propagation: str = "") -> None:
        """Delete an object. `propagation` is `Background` (the default of most kinds), `Foreground` or `Orphan`."""
        kind = self.kind(kind)
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

    def get(self, kind: Kind | str, name: str, *, namespace: str = "default") -> Doc | None:
        """An object, or None if there is none of this name."""
        kind = self.kind(kind)
        return self.store.get(kind, self._namespace(kind, namespace), name)

    def list(self, kind: Kind | str, *, namespace: str = "") -> Sequence[Doc]:
        """All objects of a kind, in one namespace or (empty) in all."""
        return list(self.store.list(self.kind(kind), namespace))

    def pod(self, name: str, *, namespace: str = "default") -> Doc:
        """A pod; raises NotFound if there is none of this name."""
        return self.store.read(kinds.POD, namespace, name)

    def node(self, name: str) -> Doc:
        """A node; raises NotFound if there is none of this name."""
        return self.store.read(kinds.NODE, "", name)

    def times(self, name: str, *, namespace: str = "default") -> PodTimes | None:
        """When a pod was created, got its node, started and ended, to the fraction of a second; also of a pod that is
        gone, and None if there never was one."""
        return None if self._pod_watch is None else self._pod_watch.of(namespace, name)

    def kind(self, name: Kind | str) -> Kind:
        """The kind of a name as kubectl takes it: `pods`, `Deployment`, `sts`, `jobs.batch.volcano.sh`. Raises
        NotFound."""
        if not isinstance(name, str):
            return name
        kind = self.store.registry.named(name)
        if kind is None:
            raise NotFound(f'the server doesn\'t have a resource type "{name}"')
        return kind

    def phases(self, *, namespace: str = "") -> dict[str, str]:
        """Name to phase of all pods."""
        return {_short(pod): pod["status"]["phase"] for pod in self.store.list(kinds.POD, namespace)}

    def bindings(self, *, namespace: str = "") -> dict[str, str]:
        """Name (with the namespace, if it is not `default`) to node, of all pods that have one."""
        placed = (pod for pod in self.store.list(kinds.POD, namespace) if pod["spec"].get("nodeName"))
        return {_short(pod): pod["spec"]["nodeName"] for pod in placed}

    def explain(self, name: str, *, namespace: str = "default") -> Explanation | None:
        """Why a pod is where it is, or not yet anywhere, from the scheduler that knows it."""
        for scheduler in self.assembled.schedulers:
            explain: Callable[[str, str], Explanation | None] | None = getattr(scheduler, "explain", None)
            explanation = self._ask(scheduler, partial(explain, namespace, name)) if explain is not None else None
            if explanation is not None:
                return explanation
        return None

    def would(self, *objects: Doc | Builder | str | Path) -> Forecast:
        """What would happen if these objects were applied now: where each pod would go, which pods would be evicted, or
        why it would wait. Nothing changes. Objects are given as to `apply`."""
        from fairlead.testing.asking import would

        documents = [doc for one in objects for doc in _documents(one)]
        return self._in_cluster(lambda: would(self.assembled, self.runtime, documents))

    def _in_cluster(self, deed: Callable[[], Answer]) -> Answer:
        return deed() if self._served is None else self._served.call(deed)

    def _ask(self, controller: Controller, question: Callable[[], Answer]) -> Answer:
        return self._in_cluster(lambda: self.runtime.ask(controller, lambda _: question()).result())

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


def _assembly(
    config: str | Path | Doc | None, volcano: str | Path | None, plugins: Sequence[Plugin], seed: int
) -> SchedulerAssembly:
    from fairlead.testing.scheduler_choice import scheduler_assembly

    return scheduler_assembly(config, volcano=volcano, plugins=plugins, seed=seed)


def _nodes(nodes: int | Iterable[Doc | Builder]) -> Sequence[Doc | Builder]:
    """Raises ConfigError for what is neither a number of nodes nor nodes."""
    if isinstance(nodes, int):
        if nodes < 0:
            raise ConfigError(f"{nodes} must not be negative", path="nodes")
        return [node(f"node-{index}") for index in range(nodes)]
    if isinstance(nodes, str | Mapping | Builder) or not isinstance(nodes, Iterable):
        hint = "give a number, or a list of builders or documents of nodes"
        raise ConfigError(f"{nodes!r} is neither a number nor a list of nodes", path="nodes", hint=hint)
    return list(nodes)


def _documents(one: object) -> Sequence[Doc]:
    """Raises ConfigError for what is not a document, a builder or a path."""
    if isinstance(one, Builder):
        return [one.doc()]
    if isinstance(one, dict):
        if missing := [field for field in ("apiVersion", "kind", "metadata") if not one.get(field)]:
            raise ConfigError(f"has no {missing[0]}", path=f"object {_words(one)}")
        return [one]
    if isinstance(one, str | Path):
        from fairlead.testing.manifests import read_manifests

        return read_manifests(one)
    raise _no_object(one)


def _no_object(one: object) -> ConfigError:
    hint = "give a document, a builder or a path"
    if isinstance(one, Iterable):
        hint = "give its elements one by one, as in schedule(*objects)"
    return ConfigError(f"{_words(one)} is no object", path="objects", hint=hint)


def _words(one: object) -> str:
    """An argument in an error, of which the beginning will do."""
    text = repr(one)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _short(doc: Doc) -> str:
    namespace, name = doc["metadata"]["namespace"], doc["metadata"]["name"]
    return name if namespace == "default" else f"{namespace}/{name}"


def _without_events(store: Store, perform: Perform | None, controller: Controller, write: Write) -> Doc:
    """Carry out a write, unless it is one about an Event, which nobody will read."""
    if write.kind.kind == "Event":
        return {}
    return store.perform(write) if perform is None else perform(controller, write)
