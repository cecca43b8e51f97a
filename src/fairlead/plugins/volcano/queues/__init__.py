"""Tier plugins that divide the cluster among queues and jobs: capacity, proportion, drf, overcommit.

ledger counts what each queue has, queue_tree and share_tree add it up along the hierarchy, group_limits bounds a queue
per group of nodes.
"""
