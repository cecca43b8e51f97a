"""The scheduler of recorded stories: Volcano's shipped configuration with the original's quirks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.core.engine.options import Options
from fairlead.volcano.config.setup import VolcanoSetup

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.model.flow import DocView


def story_scheduler(view: DocView) -> Scheduler:
    volcano = VolcanoSetup("shipped", compatible=True, only=True)
    return SchedulerAssembly(volcano=volcano, options=Options(seed=1)).scheduler(view)
