"""What Koordinator's manager and agents do for simulated nodes: node_agents.py.

Modules: node_topologies.
"""
