"""Plugins that compare a pod with one node: `basics` (name, unschedulable), `taints`, `node_affinity`, `ports`,
`images`, `features`.
"""
