"""The scheduler of recorded stories: Volcano's shipped configuration with the original's quirks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.config.schedulers import SchedulerAssembly
from fairlead.config.volcano_setup import VolcanoSetup
from fairlead.engine.options import Options

if TYPE_CHECKING:
    from fairlead.engine.scheduler import Scheduler
    from fairlead.model.flow import DocView


def story_scheduler(view: DocView) -> Scheduler:
    volcano = VolcanoSetup("shipped", compatible=True, only=True)
    return SchedulerAssembly(volcano=volcano, options=Options(seed=1)).scheduler(view)
