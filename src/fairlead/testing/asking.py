"""Questions about what would happen, put to the schedulers of a virtual cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.assembly.expansion import expand, needed
from fairlead.core.engine.what_if.answers import answer
from fairlead.core.engine.what_if.simulate import Forecast, simulate
from fairlead.core.engine.what_if.workload import Workload
from fairlead.errors import ConfigError
from fairlead.runtime.copies import ProcessCopy, branch

if TYPE_CHECKING:
    from fairlead.assembly.cluster import AssembledCluster
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.flow import Doc
    from fairlead.runtime.virtual import VirtualRuntime
    from fairlead.testing.harness import Harness


def would(cluster: AssembledCluster, runtime: VirtualRuntime, documents: Sequence[Doc]) -> Forecast:
    """What would happen if these objects were applied to the cluster now."""
    store, scheduler = cluster.store, cluster.scheduler
    if scheduler is None:
        raise ConfigError("this cluster has no scheduler of fairlead's own, so nobody can be asked")
    objects = expand(documents, context_of(store, documents), now=store.clock(), settings=cluster.settings)
    workload = Workload.of(objects)
    copied = runtime.ask(
        scheduler, lambda asked: ProcessCopy(lambda: simulate(asked, workload, branch, now=store.clock()))
    )
    return copied.result().result()


def context_of(store: Store, documents: Sequence[Doc]) -> Iterator[Doc]:
    """What admission and controllers read of a cluster for these objects."""
    for kind in needed(documents):
        yield from store.list(kind)


def answer_of(cluster: Harness, question: Doc, documents: Sequence[Doc]) -> Doc:
    """The answer of a cluster's scheduler to a question as a document; `documents` are expanded into its objects."""
    store, scheduler, settings = cluster.store, cluster.assembled.scheduler, cluster.assembled.settings
    objects = expand(documents, context_of(store, documents), now=cluster.now, settings=settings) if documents else []
    assert scheduler is not None
    whole = {"now": cluster.now, **question, **({"objects": objects} if objects else {})}
    copied = cluster.runtime.ask(scheduler, lambda asked: ProcessCopy(lambda: answer(asked, whole, branch)))
    return copied.result().result()
