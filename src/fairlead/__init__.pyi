"""The public names as type checkers see them; __init__.py imports each when it is first used."""

from fairlead.core.framework.cycle import Cycle as Cycle
from fairlead.core.framework.lift import interests as interests
from fairlead.core.framework.lift import node_filter as node_filter
from fairlead.core.framework.lift import node_score as node_score
from fairlead.core.framework.plugin import Hint as Hint
from fairlead.core.framework.plugin import Interest as Interest
from fairlead.core.framework.plugin import Plugin as Plugin
from fairlead.core.framework.plugin import Scope as Scope
from fairlead.core.framework.plugin import Wait as Wait
from fairlead.core.framework.results.cached_plugin import AfterPlacing as AfterPlacing
from fairlead.core.framework.results.cached_plugin import CachedPlugin as CachedPlugin
from fairlead.core.model.explanation import Explanation as Explanation
from fairlead.core.model.pod import Pod as Pod
from fairlead.core.model.reasons import SKIP as SKIP
from fairlead.core.model.reasons import Reason as Reason
from fairlead.core.model.reasons import Reject as Reject
from fairlead.core.model.reasons import Status as Status
from fairlead.core.model.reasons import unresolvable as unresolvable
from fairlead.core.model.reasons import unschedulable as unschedulable
from fairlead.core.state.nodes import NodeRow as NodeRow
from fairlead.core.state.nodes import Nodes as Nodes
from fairlead.errors import ApiError as ApiError
from fairlead.errors import ConfigError as ConfigError
from fairlead.errors import FairleadError as FairleadError
from fairlead.errors import Invalid as Invalid
from fairlead.library import LiveScheduler as LiveScheduler
from fairlead.library import Placements as Placements
from fairlead.library import schedule as schedule

__all__ = [
    "SKIP",
    "AfterPlacing",
    "ApiError",
    "CachedPlugin",
    "ConfigError",
    "Cycle",
    "Explanation",
    "FairleadError",
    "Hint",
    "Interest",
    "Invalid",
    "LiveScheduler",
    "NodeRow",
    "Nodes",
    "Placements",
    "Plugin",
    "Pod",
    "Reason",
    "Reject",
    "Scope",
    "Status",
    "Wait",
    "interests",
    "node_filter",
    "node_score",
    "schedule",
    "unresolvable",
    "unschedulable",
]
__version__: str
