"""Job plugins of other packages, found by entry point, as scheduling plugins are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from fairlead.errors import ConfigError
from fairlead.volcano.jobs.job_plugins.job_plugin import JobPlugin

ENTRY_POINTS = "fairlead.job_plugins"


@cache
def installed_job_plugins() -> Mapping[str, type[JobPlugin]]:
    """By name. Raises ConfigError for one that is no job plugin."""
    found: dict[str, type[JobPlugin]] = {}
    for point in entry_points(group=ENTRY_POINTS):
        plugin = point.load()
        if not (isinstance(plugin, type) and issubclass(plugin, JobPlugin)):
            raise ConfigError(f'the job plugin "{point.name}" ({point.value}) is not a subclass of JobPlugin')
        found[point.name] = plugin
    return found
