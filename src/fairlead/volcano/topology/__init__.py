"""Tier plugins about where tasks of one job stand to each other: network_topology with hyper_node_sums (HyperNodes),
task_topology with buckets (affinity between tasks). `gang_domains` offers HyperNodes to gangs of kube profiles,
`controller` discovers them.
"""
