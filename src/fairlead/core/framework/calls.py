"""Calls of plugins: every call is measured if the cycle is, and whatever a plugin raises names it.

Invariant: what leaves these functions is a FairleadError, or an IndexFailed, which is for the Guard of the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.core.framework.plugin import takes_part
from fairlead.core.framework.verdicts import wrong_length
from fairlead.errors import FairleadError, IndexFailed, PluginError, WrongAnswer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.framework.results.cached_plugin import CachedPlugin
    from fairlead.core.framework.verdicts import VerdictCodes
    from fairlead.core.model.reasons import Reject
    from fairlead.core.state.nodes import Nodes

HIGHEST = 100
"""The highest score that a plugin may give (MaxNodeScore)."""


def _failure(plugin: Plugin, point: str, cycle: Cycle, error: Exception) -> PluginError:
    """What is raised in the place of a plugin's exception, whose traceback is kept."""
    failure = PluginError(plugin.name, point, error)
    cycle.effects.raised.note(str(failure), error)
    return failure


def call_plugin(plugin: Plugin, point: str, cycle: Cycle, *args: Any) -> Any:
    """Call a plugin at a point and return its answer."""
    try:
        if cycle.meter is None:
            return getattr(plugin, point)(cycle, *args)
        return cycle.meter.call(cycle, plugin.name, point, partial(getattr(plugin, point), cycle, *args))
    except (FairleadError, IndexFailed):
        raise
    except Exception as error:
        raise _failure(plugin, point, cycle, error) from error


def scores_by(plugin: Plugin, cycle: Cycle, nodes: Nodes) -> Any:
    """Call a plugin's score over a selection of rows: whole numbers, one for each row or one for all."""
    values = call_plugin(plugin, "score", cycle, nodes)
    if type(values) is int:
        return values
    if type(values) is np.ndarray and values.dtype.kind in "iu" and len(values) == len(nodes):
        return values
    try:
        return whole_scores(values, len(nodes), raw=takes_part(plugin, "normalize_score"))
    except WrongAnswer as error:
        raise _failure(plugin, "score", cycle, error) from error


def score_of_row(plugin: Plugin, cycle: Cycle, row: int) -> int:
    """Call a plugin's score of one row."""
    value = call_plugin(plugin, "score_row", cycle, row)
    if type(value) is int:
        return value
    try:
        return int(whole_scores(value, 1, raw=takes_part(plugin, "normalize_score")))
    except WrongAnswer as error:
        raise _failure(plugin, "score", cycle, error) from error


def whole_scores(values: Any, count: int, *, raw: bool = False) -> Any:
    """Scores without what is behind their points. Raises WrongAnswer for what is none: a score between 0 and 1 would
    count as 0, and comes from a scale that ends at 1. `raw` scores are normalised by the plugin that gave them."""
    if values is None:
        raise WrongAnswer("it returned None, and a score is a number from 0 to 100 (is a `return` missing?)")
    column = np.asarray(values)
    if column.dtype.kind not in "biuf":
        raise WrongAnswer(f"it returned {values!r}, and a score is a number from 0 to 100")
    if column.ndim and column.shape != (count,):
        raise WrongAnswer(f"it returned a column of {len(column)}, and there are {count} nodes to score")
    if column.dtype.kind == "f":
        if not np.isfinite(column).all():
            odd = "NaN" if np.isnan(column).any() else "infinity"
            raise WrongAnswer(f"it returned {odd}, and a score is a number from 0 to 100")
        small = np.atleast_1d(column)[np.atleast_1d((column > 0) & (column < 1))]
        if len(small) and not raw:
            raise WrongAnswer(f"it returned {small[0]:g}, which would count as 0: scores are numbers from 0 to 100")
    if raw:
        return values
    return column.astype(np.int64) if column.ndim else int(column)


def all_stand_aside(plugins: Sequence[CachedPlugin], cycle: Cycle) -> bool:
    """Whether all of these plugins stand aside for the cycle's pod."""
    for plugin in plugins:
        try:
            if not plugin.stands_aside(cycle):
                return False
        except (FairleadError, IndexFailed):
            raise
        except Exception as error:
            raise _failure(plugin, "stands_aside", cycle, error) from error
    return True


def is_valid_for(plugin: CachedPlugin, cycle: Cycle) -> bool:
    """Whether a plugin's cached answers may serve the cycle's pod (`CachedPlugin.refresh`)."""
    try:
        return plugin.refresh(cycle)
    except (FairleadError, IndexFailed):
        raise
    except Exception as error:
        raise _failure(plugin, "refresh", cycle, error) from error


def _rejects(plugin: Plugin, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
    rejects = plugin.filter(cycle, nodes)
    if rejects is None:
        raise WrongAnswer("it returned None, and a filter returns its Rejects, or () if it refuses no node")
    return rejects


def refusals_by(plugin: Plugin, cycle: Cycle, nodes: Nodes, codes: VerdictCodes) -> NDArray[np.int32] | None:
    """Call a plugin's filter over a selection of rows; its refusals as codes, None if it refuses no row."""
    try:
        if (meter := cycle.meter) is not None:
            rejects = meter.call(cycle, plugin.name, "filter", lambda: tuple(_rejects(plugin, cycle, nodes)))
        else:
            rejects = _rejects(plugin, cycle, nodes)
        return codes.refusals(plugin.name, rejects, len(nodes))
    except (FairleadError, IndexFailed):
        raise
    except Exception as error:
        raise _failure(plugin, "filter", cycle, error) from error


def passing(plugin: Plugin, cycle: Cycle, nodes: Nodes, ok: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Call a plugin's filter; of the rows of a mask those that it does not refuse, None if it failed to judge a row.
    This is for cycles that are not measured and for callers that do not request reasons, or not yet."""
    try:
        for reject in _rejects(plugin, cycle, nodes):
            if len(reject.rows) != len(ok):
                raise wrong_length(len(reject.rows), len(ok))
            if reject.reason.error and reject.rows.any():
                return None
            ok = ok > reject.rows  # of truth values: the first and not the second
        return ok
    except (FairleadError, IndexFailed):
        raise
    except Exception as error:
        raise _failure(plugin, "filter", cycle, error) from error


def check_range(plugin: str, lowest: int, highest: int) -> None:
    """Raise if a plugin's final scores are not within 0..100. (The words are kube-scheduler's.)"""
    if lowest < 0 or highest > HIGHEST:
        bad = lowest if lowest < 0 else highest
        raise FairleadError(
            f'plugin "{plugin}" returns an invalid score {bad}, it should in the range of [0, 100] after normalizing'
        )
