"""NUMA and CPU binding. Reading order: `request` (what a pod wants), `rows` (what nodes have and pods hold),
`accumulator` (which CPUs), `allocation` (one pod on one node), `merging` (NUMA policies), `plugin`.

Further modules: providers.
"""
