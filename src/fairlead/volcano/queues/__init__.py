"""Tier plugins that divide the cluster among queues and jobs: capacity, proportion, drf, overcommit.

The arithmetic is in volcano/queues and knows no rounds; ledger enters the jobs of a round into its accounts, and
group_limits bounds a queue per group of nodes.

Modules: account, admission, changes, command, controller, device_quotas, filling, share_tree, tree, tree_rules,
what_if.
"""
