"""How commands ask a scheduler why something is as it is: the explanation, from the first scheduler that has one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fairlead.console.scheduler_search import NotAScheduler, SchedulerChoice, first_answer
from fairlead.errors import FairleadError, NotFound

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi

_KINDS = ("Explanation", "GangExplanation", "QueueExplanation")


class UnknownToScheduler(FairleadError):
    """A scheduler answers, and does not know what it was asked about."""


async def ask(
    asked: SchedulerChoice, namespace: str, name: str, *, plural: str = "pods", called: str = ""
) -> dict[str, Any]:
    """The Explanation, from the first who has one. `called` is what the user calls such a thing."""
    from fairlead.cluster.server.explaining import explanation_path

    unknown = False

    async def explanation(api: KubeApi) -> dict[str, Any]:
        nonlocal unknown
        try:
            answer = json.loads(await api.raw(explanation_path(namespace, name, plural)))
        except NotFound as error:
            unknown |= error.details.get("kind") == plural
            raise
        if not isinstance(answer, dict) or answer.get("kind") not in _KINDS:
            raise NotAScheduler(f"{api.connection} is not a fairlead")
        return answer

    try:
        return await first_answer(asked, explanation)
    except FairleadError:
        if not unknown:
            raise
    where = f' in namespace "{namespace}"' if namespace else ""
    raise UnknownToScheduler(f'the scheduler knows no {called or plural.removesuffix("s")} "{name}"{where}')
