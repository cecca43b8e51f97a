"""What Python programs call to have pods scheduled: `schedule` on objects or a snapshot, LiveScheduler on a cluster.

    schedule("manifests/", nodes=3).bindings           # pods to nodes, on virtual time, in this process
    with LiveScheduler("fairlead.kubeconfig"):         # places the pods of a running cluster
        ...

Both take a configuration as `fairlead up --config` does. Everything else about a cluster in this process is in
fairlead.testing.Harness, on which `schedule` stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from fairlead.assembly.cluster import ClusterAssembly
from fairlead.client.port import Query
from fairlead.core.model import kinds
from fairlead.core.model.html_tables import html_paragraph, html_table
from fairlead.runtime.loop_thread import LoopThread
from fairlead.testing.harness import Harness
from fairlead.testing.scheduler_choice import scheduler_assembly

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.model.explanation import Explanation
    from fairlead.core.model.flow import Doc
    from fairlead.runtime.live import LiveRuntime
    from fairlead.testing.builders import Builder

_LOOK = 0.02
"""Seconds between two looks at whether the scheduler has begun."""


@dataclass(frozen=True, slots=True)
class Placements:
    """What came of scheduling some objects. Pods outside the namespace `default` are named `namespace/name`."""

    bindings: dict[str, str]
    """Pods that have a node, and which."""
    waiting: dict[str, str]
    """Pods that have none, and what their PodScheduled condition says."""
    cluster: Harness = field(repr=False)
    """The cluster afterwards, to look at: objects, events, times."""

    def explain(self, name: str, *, namespace: str = "default") -> Explanation | None:
        """Why a pod is where it is, or not yet anywhere; None if there is no such pod."""
        return self.cluster.explain(name, namespace=namespace)

    def _repr_html_(self) -> str:
        every = len(self.bindings) + len(self.waiting)
        return (
            html_paragraph(f"{len(self.bindings)} of {every} pods have a node")
            + html_table(("pod", "node"), self.bindings.items())
            + html_table(("waiting pod", "why"), self.waiting.items())
        )


def schedule(
    *objects: Doc | Builder | str | Path,
    nodes: int | Iterable[Doc | Builder] = 0,
    snapshot: str | Path | None = None,
    config: str | Path | Doc | None = None,
    volcano: str | Path | None = None,
    plugins: Sequence[Plugin] = (),
    seconds: float = 60.0,
    seed: int = 0,
) -> Placements:
    """Schedule objects on a cluster of their own, in this process and on virtual time, and return who went where.

    Args:
        objects: Documents, builders or paths of manifests: nodes, pods, workloads (whose pods are made), classes.
        nodes: How many equal nodes there are besides, or builders or documents of nodes.
        snapshot: A file of `fairlead snapshot save` to begin with. Its nodes are simulated.
        config: The path of a KubeSchedulerConfiguration, or one as a document.
        volcano: The path of a Volcano configuration, or a preset, for pods of schedulerName `volcano`.
        plugins: Plugin objects that take part beside those of the configuration.
        seconds: How much virtual time passes. Refused pods are tried again in it when something changes.
        seed: Decides between equally good nodes.

    Raises:
        ConfigError: An argument, a configuration or a manifest cannot be used.
        Invalid: An object is not valid, as an API server would say it.
    """
    make = Harness if snapshot is None else partial(Harness.from_snapshot, snapshot)
    cluster = make(nodes=nodes, config=config, volcano=volcano, plugins=plugins, seed=seed)
    cluster.apply(*objects)
    cluster.run(seconds)
    bindings = cluster.bindings()
    waiting = {}
    for pod in cluster.list(kinds.POD):
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        title = name if namespace == "default" else f"{namespace}/{name}"
        if title not in bindings:
            conditions = pod["status"].get("conditions") or ()
            said = [one.get("message", "") for one in conditions if one["type"] == "PodScheduled"]
            waiting[title] = said[0] if said else ""
    return Placements(bindings, waiting, cluster)


class LiveScheduler:
    """A scheduler that places the pods of a running cluster from this process, in a thread, until it is closed.

    It acts at once and holds no lease: run it where no other scheduler serves the same names. `fairlead scheduler` is
    the one to run in production.
    """

    def __init__(
        self,
        kubeconfig: str | Path | None = None,
        *,
        context: str | None = None,
        config: str | Path | Doc | None = None,
        volcano: str | Path | None = None,
        plugins: Sequence[Plugin] = (),
        seed: int = 0,
    ) -> None:
        """Connect and begin; returns when the scheduler has seen the cluster.

        Args:
            kubeconfig: Which cluster; as the commands find it unless given.
            context: Another context of the kubeconfig than the current one.
            config: The path of a KubeSchedulerConfiguration, or one as a document.
            volcano: The path of a Volcano configuration, or a preset.
            plugins: Plugin objects that take part beside those of the configuration.
            seed: Decides between equally good nodes.

        Raises:
            ConfigError: There is no such cluster, or a configuration cannot be used.
            ApiError: The cluster does not answer, or does not let this user in.
        """
        from fairlead.client.credentials import connect

        self._connection = connect(None if kubeconfig is None else str(kubeconfig), context)
        self._assembly = scheduler_assembly(config, volcano=volcano, plugins=plugins, seed=seed)
        self._cluster = ClusterAssembly(self._assembly, names=())
        self._thread = LoopThread(self._serve, name="fairlead-scheduler")

    def explain(self, name: str, *, namespace: str = "default") -> Explanation | None:
        """Why a pod is where it is, or not yet anywhere; None if this scheduler does not know it."""
        asked = self._thread.call(lambda: self._runtime.ask(self._scheduler, lambda one: one.explain(namespace, name)))
        return asked.result()

    def close(self) -> None:
        """Make no further attempt, finish the writes that are on their way, and end."""
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _serve(self, begun: Callable[[], None], stopped: asyncio.Event) -> None:
        from fairlead.client.client import KubeApi
        from fairlead.runtime.live import LiveRuntime
        from fairlead.runtime.worlds import Remote

        await _check(KubeApi(self._connection, attempts=2))
        api = KubeApi(self._connection)
        try:
            world = Remote(api)
            self._scheduler = self._assembly.scheduler(world.view)
            self._runtime = LiveRuntime(world, [self._scheduler, *self._cluster.joining(world.view)])
            await _until_stopped(self._runtime, begun, stopped)
        finally:
            await api.close()


async def _check(api: KubeApi) -> None:
    """Raises ApiError if the cluster cannot be used. Watches would try again for ever, and say nothing."""
    try:
        await api.list(kinds.NODE, Query(limit=1))
    finally:
        await api.close()


async def _until_stopped(runtime: LiveRuntime, begun: Callable[[], None], stopped: asyncio.Event) -> None:
    running = asyncio.create_task(runtime.run_until_stopped())
    ending = asyncio.create_task(stopped.wait())
    try:
        while not (runtime.stepping or running.done() or ending.done()):
            await asyncio.wait([running, ending], timeout=_LOOK)
        begun()
        await asyncio.wait([running, ending], return_when=asyncio.FIRST_COMPLETED)
        runtime.stop()
        await running
    finally:
        ending.cancel()
