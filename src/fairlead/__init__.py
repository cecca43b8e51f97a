"""fairlead: a cluster scheduler that speaks kube-scheduler and Volcano over one shared, columnar state.

The public names are here (`__all__`) and in fairlead.testing; docs/api.md says what is kept of them. They are imported
when first used, so that `import fairlead`, and with it the command line's help, stays cheap. The file beside this one,
__init__.pyi, shows them to type checkers.
"""

from fairlead.lazy_names import lazy_names

__version__ = "0.1.0"

_HOMES = {
    "ApiError": "errors",
    "CachedPlugin": "framework.results.cached_plugin",
    "ConfigError": "errors",
    "Cycle": "framework.cycle",
    "Explanation": "model.explanation",
    "FairleadError": "errors",
    "Hint": "framework.plugin",
    "Interest": "framework.plugin",
    "LiveScheduler": "library",
    "NodeRow": "state.nodes",
    "Nodes": "state.nodes",
    "Placements": "library",
    "Plugin": "framework.plugin",
    "Pod": "model.pod",
    "Reason": "model.reasons",
    "Reject": "model.reasons",
    "SKIP": "model.reasons",
    "Scope": "framework.plugin",
    "Status": "model.reasons",
    "Wait": "framework.plugin",
    "interests": "framework.lift",
    "node_filter": "framework.lift",
    "node_score": "framework.lift",
    "schedule": "library",
    "unresolvable": "model.reasons",
    "unschedulable": "model.reasons",
}
__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
