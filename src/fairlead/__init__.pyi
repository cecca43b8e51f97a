"""The public names as type checkers see them; __init__.py imports each when it is first used."""

from fairlead.framework.cycle import Cycle as Cycle
from fairlead.framework.lift import node_filter as node_filter
from fairlead.framework.lift import node_score as node_score
from fairlead.framework.plugin import Hint as Hint
from fairlead.framework.plugin import Interest as Interest
from fairlead.framework.plugin import Plugin as Plugin
from fairlead.framework.plugin import Scope as Scope
from fairlead.framework.plugin import Wait as Wait
from fairlead.framework.results.cached_plugin import CachedPlugin as CachedPlugin
from fairlead.model.pod import Pod as Pod
from fairlead.model.reasons import Reason as Reason
from fairlead.model.reasons import Reject as Reject
from fairlead.model.reasons import Status as Status
from fairlead.state.nodes import NodeRow as NodeRow
from fairlead.state.nodes import Nodes as Nodes

__version__: str
