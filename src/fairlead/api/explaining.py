"""Explanations over HTTP: one path, the same on the embedded API server and on a scheduler's own port.

    GET /apis/fairlead.io/v1/namespaces/NAMESPACE/pods/NAME/explanation
    GET /apis/fairlead.io/v1/namespaces/NAMESPACE/podgroups/NAME/explanation

The scheduler works in a thread of its own while it is asked. It only reads here; if something it reads changes under
its hands, it is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from fairlead.errors import NotFound

if TYPE_CHECKING:
    from fairlead.model.explanation import Explanation
    from fairlead.model.flow import Doc
    from fairlead.model.gang_explanation import GangExplanation

Explain = Callable[[str, str], "Explanation | GangExplanation | None"]
"""Namespace and name of a pod to all that is known of it."""
_PATH = re.compile(r"/apis/fairlead\.io/v1/namespaces/([^/]+)/(pods|podgroups)/([^/]+)/explanation")
_TRIES = 50
_DISTURBED = (RuntimeError, LookupError, AssertionError, AttributeError)
"""What reading may raise while another thread writes."""


def explanation_path(namespace: str, name: str, plural: str = "pods") -> str:
    return f"/apis/fairlead.io/v1/namespaces/{namespace}/{plural}/{name}/explanation"


def is_explanation(path: str) -> bool:
    return _PATH.fullmatch(path) is not None


def explanation_document(path: str, explainers: Sequence[Explain]) -> Doc:
    """The answer to such a path; NotFound if no scheduler knows the pod or group."""
    found = _PATH.fullmatch(path)
    assert found is not None
    namespace, plural, name = map(unquote, found.groups())
    for explain in explainers:
        explanation = _patiently(explain if plural == "pods" else _of_groups(explain), namespace, name)
        if explanation is not None:
            return explanation.to_document()
    raise NotFound(f'{plural} "{name}" not found', details={"name": name, "kind": plural})


def _of_groups(explain: Explain) -> Explain:
    """Who explains pods may explain groups too: the method beside it."""
    explain_group: Explain = getattr(getattr(explain, "__self__", None), "explain_group", lambda namespace, name: None)
    return explain_group


def _patiently(explain: Explain, namespace: str, name: str) -> Explanation | GangExplanation | None:
    for _ in range(_TRIES):
        try:
            return explain(namespace, name)
        except _DISTURBED:
            continue
    return explain(namespace, name)
