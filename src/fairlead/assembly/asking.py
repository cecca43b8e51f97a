"""answerer: how a running scheduler is asked what would happen. Each question is answered in a copy of the process."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from fairlead.runtime.copies import CopyPool, branch

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.model.flow import Doc

Ask = Callable[[Callable[[Any], Any]], "Future[Any]"]


def prepare_for_questions() -> None:
    """Load what answers need, before the first question and after a scheduler has started: a start need not wait for
    it, and copies of the process have it then."""
    import fairlead.core.engine.what_if.answers  # noqa: F401
    from fairlead.core.engine.what_if.families import what_ifs

    what_ifs()


def answerer(ask: Ask, clock: Callable[[], float] = time.time) -> Callable[[Doc], Awaitable[Doc]]:
    """Puts questions, as documents, to a scheduler. `ask` is a runtime's, with the scheduler given."""
    pool = CopyPool()

    async def put(question: Doc) -> Doc:
        from fairlead.core.engine.what_if.answers import answer  # see `prepare_for_questions`

        def answered(scheduler: Scheduler) -> Doc:
            return answer(scheduler, {"now": clock(), **question}, branch)

        return await pool.ask(ask, answered)

    return put
