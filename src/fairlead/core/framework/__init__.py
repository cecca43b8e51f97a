"""What a plugin author imports, and how the plugins of a profile are called.

Reading order: plugin (Plugin and kube-scheduler's extension points), extended_plugin (points beyond those), cycle (what
a plugin sees), verdicts and refusals (what it answers), effects (what it requests besides), profile, evaluate
(PreFilter to Score), points (the other extension points), gang, explainers, numa_hints (the choice of NUMA nodes).
results/ is the cache, which only those who care for speed need to open.

Further modules: calls, extender, lift, meter, raised, row_view, sampling, sums.
"""
