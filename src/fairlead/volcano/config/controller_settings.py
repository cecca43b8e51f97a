"""controller_settings: the settings of Volcano's controllers and admission in a cluster with these setups.

They are the same wherever the cluster runs; a cluster without a setup of Volcano's has them all the same, because
its users may bring another scheduler for Volcano's kinds.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.volcano.config.setup import VolcanoSetup
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.jobs.installed_plugins import installed_job_plugins
from fairlead.volcano.jobs.ssh_keys import key_maker
from fairlead.volcano.records.quirks import Quirks


def controller_settings(setups: Sequence[object], seed: int | None) -> VolcanoSettings:
    """The settings for the first setup of Volcano's, or the defaults. Keys of Jobs follow from the seed, if there is
    one."""
    volcano = next((setup for setup in setups if isinstance(setup, VolcanoSetup)), None)
    return VolcanoSettings(
        schedulers=("volcano",) if volcano is None else volcano.options.scheduler_names,
        quirks=Quirks.of(compatible=volcano is not None and volcano.compatible),
        make_keys=key_maker(seed),
        job_plugins=installed_job_plugins(),
    )
