"""The descheduler as koord-descheduler does it: moves pods from nodes that are used too much to others.

Read settings.py, then controller.py, which carries out a pass; low_node_load.py and custom_priority.py say which pods a
pass would move, evictable.py which of them may be moved, and migration.py how a PodMigrationJob moves one.

Modules: anomaly, arbitration, command, facts, limits, node_load, pod_order, reading, reserving, shapes.
"""
