"""Explanations over HTTP: one path, the same on the embedded API server and on a scheduler's own port.

    GET /apis/fairlead.io/v1/namespaces/NAMESPACE/pods/NAME/explanation
    GET /apis/fairlead.io/v1/namespaces/NAMESPACE/podgroups/NAME/explanation
    GET /apis/fairlead.io/v1/queues/NAME/explanation

A request becomes a question to each scheduler in turn, which answers it on its own thread between two steps. An answer
therefore shows one moment, however busy the scheduler is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable
from urllib.parse import unquote

from fairlead.errors import NotFound

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fairlead.core.model.explanation import Explained
    from fairlead.core.model.flow import Doc


@runtime_checkable
class Explainer(Protocol):
    """A controller that can be asked about pods, groups and queues. None is what it does not know."""

    def explain(self, namespace: str, name: str) -> Explained | None: ...

    def explain_group(self, namespace: str, name: str) -> Explained | None: ...

    def explain_queue(self, name: str) -> Explained | None: ...


AskExplainer = Callable[[Callable[[Explainer], "Doc | None"]], "Future[Doc | None]"]
"""Puts a question to one Explainer: a runtime's `ask` with its first argument given."""

_PATH = re.compile(
    r"/apis/fairlead\.io/v1/(?:namespaces/([^/]+)/(?=pod)|(?=queues))(pods|podgroups|queues)/([^/]+)/explanation"
)


def explanation_path(namespace: str, name: str, plural: str = "pods") -> str:
    where = "" if plural == "queues" else f"namespaces/{namespace}/"
    return f"/apis/fairlead.io/v1/{where}{plural}/{name}/explanation"


def is_explanation(path: str) -> bool:
    return _PATH.fullmatch(path) is not None


def explained_namespace(path: str) -> str:
    """The namespace that such a path is about; empty for a queue, which pods of all namespaces may be in."""
    found = _PATH.fullmatch(path)
    return unquote(found[1] or "") if found is not None else ""


async def explanation_document(path: str, explainers: Sequence[AskExplainer]) -> Doc:
    """The answer to such a path; NotFound if no scheduler knows the pod, group or queue."""
    found = _PATH.fullmatch(path)
    assert found is not None
    namespace, plural, name = (unquote(part or "") for part in found.groups())
    for ask in explainers:
        document = await asyncio.wrap_future(ask(_question(plural, namespace, name)))
        if document is not None:
            return document
    raise NotFound(f'{plural} "{name}" not found', details={"name": name, "kind": plural})


def _question(plural: str, namespace: str, name: str) -> Callable[[Explainer], Doc | None]:
    def explain(explainer: Explainer) -> Doc | None:
        if plural == "pods":
            explained = explainer.explain(namespace, name)
        elif plural == "podgroups":
            explained = explainer.explain_group(namespace, name)
        else:
            explained = explainer.explain_queue(name)
        return None if explained is None else explained.to_document()

    return explain
