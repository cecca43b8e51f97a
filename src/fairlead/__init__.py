"""fairlead: a cluster scheduler that speaks kube-scheduler and Volcano over one shared, columnar state.

The public names are here (`__all__`) and in fairlead.testing; docs/api.md says what is kept of them. They are imported
when first used, so that `import fairlead`, and with it the command line's help, stays cheap. The file beside this one,
__init__.pyi, shows them to type checkers.

Modules: assembly, builtin_families, cel, cli, client, config, console, core, errors, gpu_share, koordinator, lab,
lazy_names, library, runtime, volcano.
"""

from fairlead.lazy_names import lazy_names

__version__ = "0.1.0"

_HOMES = {
    "AfterPlacing": "core.framework.results.cached_plugin",
    "ApiError": "errors",
    "CachedPlugin": "core.framework.results.cached_plugin",
    "ConfigError": "errors",
    "Cycle": "core.framework.cycle",
    "Explanation": "core.model.explanation",
    "FairleadError": "errors",
    "Hint": "core.framework.plugin",
    "Interest": "core.framework.plugin",
    "Invalid": "errors",
    "LiveScheduler": "library",
    "NodeRow": "core.state.nodes",
    "Nodes": "core.state.nodes",
    "Placements": "library",
    "Plugin": "core.framework.plugin",
    "Pod": "core.model.pod",
    "Reason": "core.model.reasons",
    "Reject": "core.model.reasons",
    "SKIP": "core.model.reasons",
    "Scope": "core.framework.plugin",
    "Status": "core.model.reasons",
    "Wait": "core.framework.plugin",
    "interests": "core.framework.lift",
    "node_filter": "core.framework.lift",
    "node_score": "core.framework.lift",
    "schedule": "library",
    "unresolvable": "core.model.reasons",
    "unschedulable": "core.model.reasons",
}
__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
