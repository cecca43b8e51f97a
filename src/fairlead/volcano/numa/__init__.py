"""CPUs per NUMA node, for any plugin that pins pods to CPUs.

Read `hints` (which NUMA nodes and which CPUs a pod gets), then `views` (which CPUs of a node are left).
"""
