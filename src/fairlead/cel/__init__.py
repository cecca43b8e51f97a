"""The Common Expression Language as Kubernetes uses it to select devices.

Reading order: `syntax` (text to tree), `values` (types that Python has none for), `operators`, `functions` and
`text_functions` (the library), `macros`, `program` (tree to Python functions), `selectors` (the port that the core
declares for selectors of devices). docs/decisions says why this is not a library from elsewhere.

Further modules: call_costs, checking, cost, environment, literals, loops, named_formats, net_functions, patterns,
sizes, steps.
"""
