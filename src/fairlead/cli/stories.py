"""The scheduler of recorded stories: Volcano's shipped configuration with the original's quirks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.config.volcano import load_volcano_config
from fairlead.config.volcano_build import profile_of_volcano
from fairlead.config.volcano_presets import PRESETS
from fairlead.engine.scheduler import Options, Scheduler

if TYPE_CHECKING:
    from fairlead.model.flow import DocView


def story_scheduler(view: DocView) -> Scheduler:
    profile = profile_of_volcano(load_volcano_config(PRESETS["shipped"], compatible=True))
    return Scheduler([profile], Options(seed=1))
