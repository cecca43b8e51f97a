"""Questions about what would happen, put to the schedulers of a virtual cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.assembly.expansion import needed
from fairlead.assembly.questions import DEPENDENTS, in_namespace, live_tree, question_about
from fairlead.core.engine.what_if.answers import answer, workload_of
from fairlead.core.engine.what_if.simulate import Forecast, simulate
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
    question = question_of(store, documents, now=store.clock(), settings=cluster.settings)
    workload = workload_of(question)
    copied = runtime.ask(
        scheduler, lambda asked: ProcessCopy(lambda: simulate(asked, workload, branch, now=store.clock()))
    )
    return copied.result().result()


def context_of(store: Store, documents: Sequence[Doc]) -> Iterator[Doc]:
    """What admission and controllers read of a cluster for these objects."""
    for kind in needed(documents):
        yield from store.list(kind)


def question_of(store: Store, documents: Sequence[Doc], *, now: float, settings: Sequence[object]) -> Doc:
    """The fields of a question about documents, with what exists of them in a Store."""
    placed = [in_namespace(doc, "default") for doc in documents]
    found = [doc for one in placed if (doc := _live(store, one)) is not None]
    names = {doc["metadata"].get("namespace", "") for doc in found}
    listed = [doc for kind in DEPENDENTS for name in names for doc in store.list(kind, name)]
    live = live_tree(found, listed)
    return question_about(placed, context_of(store, documents), live, now=now, settings=settings)


def _live(store: Store, document: Doc) -> Doc | None:
    kind = store.registry.by_kind(document["apiVersion"], document["kind"])
    metadata = document["metadata"]
    if kind is None or not metadata.get("name"):
        return None
    return store.get(kind, metadata["namespace"] if kind.namespaced else "", metadata["name"])


def answer_of(cluster: Harness, question: Doc, documents: Sequence[Doc]) -> Doc:
    """The answer of a cluster's scheduler to a question as a document; `documents` are expanded into its objects."""
    store, scheduler, settings = cluster.store, cluster.assembled.scheduler, cluster.assembled.settings
    about = question_of(store, documents, now=cluster.now, settings=settings) if documents else {}
    assert scheduler is not None
    whole = {"now": cluster.now, **about, **question}
    copied = cluster.runtime.ask(scheduler, lambda asked: ProcessCopy(lambda: answer(asked, whole, branch)))
    return copied.result().result()
