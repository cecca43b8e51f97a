"""Calls of plugins: every call is measured if the cycle is, and whatever a plugin raises names it.

Invariant: what leaves these functions is a FairleadError, or an IndexFailed, which is for the Guard of the scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlead.errors import FairleadError, IndexFailed, PluginError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.framework.results.cached_plugin import CachedPlugin
    from fairlead.core.framework.verdicts import VerdictCodes
    from fairlead.core.state.nodes import Nodes

HIGHEST = 100
"""The highest score that a plugin may give (MaxNodeScore)."""


def call_plugin(plugin: Plugin, point: str, cycle: Cycle, *args: Any) -> Any:
    """Call a plugin at a point and return its answer."""
    try:
        if cycle.meter is None:
            return getattr(plugin, point)(cycle, *args)
        return cycle.meter.call(cycle, plugin.name, point, partial(getattr(plugin, point), cycle, *args))
    except (FairleadError, IndexFailed):
        raise
    except Exception as error:
        raise PluginError(plugin.name, point, error) from error


def all_stand_aside(plugins: Sequence[CachedPlugin], cycle: Cycle) -> bool:
    """Whether all of these plugins stand aside for the cycle's pod."""
    for plugin in plugins:
        try:
            if not plugin.stands_aside(cycle):
                return False
        except (FairleadError, IndexFailed):
            raise
        except Exception as error:
            raise PluginError(plugin.name, "stands_aside", error) from error
    return True


def is_valid_for(plugin: CachedPlugin, cycle: Cycle) -> bool:
    """Whether a plugin's cached answers may serve the cycle's pod (`CachedPlugin.refresh`)."""
    try:
        return plugin.refresh(cycle)
    except (FairleadError, IndexFailed):
        raise
    except Exception as error:
        raise PluginError(plugin.name, "refresh", error) from error


def refusals_by(plugin: Plugin, cycle: Cycle, nodes: Nodes, codes: VerdictCodes) -> NDArray[np.int32] | None:
    """Call a plugin's filter over a selection of rows; its refusals as codes, None if it refuses no row."""
    try:
        if (meter := cycle.meter) is not None:
            rejects = meter.call(cycle, plugin.name, "filter", lambda: tuple(plugin.filter(cycle, nodes)))
        else:
            rejects = plugin.filter(cycle, nodes)
        return codes.refusals(plugin.name, rejects, len(nodes))
    except (FairleadError, IndexFailed):
        raise
    except Exception as error:
        raise PluginError(plugin.name, "filter", error) from error


def passing(plugin: Plugin, cycle: Cycle, nodes: Nodes, ok: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Call a plugin's filter; of the rows of a mask those that it does not refuse, None if it failed to judge a row.
    This is for cycles that are not measured and for callers that do not request reasons, or not yet."""
    try:
        for reject in plugin.filter(cycle, nodes):
            if reject.reason.error and reject.rows.any():
                return None
            ok = ok > reject.rows  # of truth values: the first and not the second
        return ok
    except (FairleadError, IndexFailed):
        raise
    except Exception as error:
        raise PluginError(plugin.name, "filter", error) from error


def check_range(plugin: str, lowest: int, highest: int) -> None:
    """Raise if a plugin's final scores are not within 0..100. (The words are kube-scheduler's.)"""
    if lowest < 0 or highest > HIGHEST:
        bad = lowest if lowest < 0 else highest
        raise FairleadError(
            f'plugin "{plugin}" returns an invalid score {bad}, it should in the range of [0, 100] after normalizing'
        )
