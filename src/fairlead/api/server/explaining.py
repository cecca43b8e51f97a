"""Explanations over HTTP: one path, the same on the embedded API server and on a scheduler's own port.

    GET /apis/fairlead.io/v1/namespaces/NAMESPACE/pods/NAME/explanation
    GET /apis/fairlead.io/v1/namespaces/NAMESPACE/podgroups/NAME/explanation
    GET /apis/fairlead.io/v1/queues/NAME/explanation

The scheduler works in a thread of its own while it is asked. It only reads here; if something it reads changes under
its hands, it is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from fairlead.errors import NotFound

if TYPE_CHECKING:
    from fairlead.model.flow import Doc


class Explained(Protocol):
    """Whatever answers: it has a documented JSON form."""

    def to_document(self) -> Doc: ...


Explain = Callable[[str, str], "Explained | None"]
"""Namespace and name of a pod to all that is known of it."""
_PATH = re.compile(
    r"/apis/fairlead\.io/v1/(?:namespaces/([^/]+)/(?=pod)|(?=queues))(pods|podgroups|queues)/([^/]+)/explanation"
)
_BESIDE = {"podgroups": "explain_group", "queues": "explain_queue"}
_TRIES = 50
_DISTURBED = (RuntimeError, LookupError, AssertionError, AttributeError)
"""What reading may raise while another thread writes."""


def explanation_path(namespace: str, name: str, plural: str = "pods") -> str:
    where = "" if plural == "queues" else f"namespaces/{namespace}/"
    return f"/apis/fairlead.io/v1/{where}{plural}/{name}/explanation"


def is_explanation(path: str) -> bool:
    return _PATH.fullmatch(path) is not None


def explanation_document(path: str, explainers: Sequence[Explain]) -> Doc:
    """The answer to such a path; NotFound if no scheduler knows the pod, group or queue."""
    found = _PATH.fullmatch(path)
    assert found is not None
    namespace, plural, name = (unquote(part or "") for part in found.groups())
    for explain in explainers:
        explanation = _patiently(_of(plural, explain), *([name] if plural == "queues" else [namespace, name]))
        if explanation is not None:
            return explanation.to_document()
    raise NotFound(f'{plural} "{name}" not found', details={"name": name, "kind": plural})


def _of(plural: str, explain: Explain) -> Callable[..., Explained | None]:
    """Who explains pods may explain groups and queues too: the method beside it."""
    if plural == "pods":
        return explain
    beside: Callable[..., Explained | None] = getattr(
        getattr(explain, "__self__", None), _BESIDE[plural], lambda *of: None
    )
    return beside


def _patiently(explain: Callable[..., Explained | None], *of: str) -> Explained | None:
    for _ in range(_TRIES):
        try:
            return explain(*of)
        except _DISTURBED:
            continue
    return explain(*of)
