"""fairlead: a cluster scheduler that speaks kube-scheduler and Volcano over one shared, columnar state.

The names that a plugin author needs are here. They are imported when first used, so that `import fairlead`, and with it
the command line's help, stays cheap. The file beside this one, __init__.pyi, shows them to type checkers.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "CachedPlugin": "framework.results.cached_plugin",
    "Cycle": "framework.cycle",
    "Hint": "framework.plugin",
    "Interest": "framework.plugin",
    "NodeRow": "state.nodes",
    "Nodes": "state.nodes",
    "Plugin": "framework.plugin",
    "Pod": "model.pod",
    "Reason": "model.reasons",
    "Reject": "model.reasons",
    "Scope": "framework.plugin",
    "Status": "model.reasons",
    "Wait": "framework.plugin",
    "node_filter": "framework.lift",
    "node_score": "framework.lift",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return ["__version__", *_HOMES]
