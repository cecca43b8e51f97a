"""Quota arithmetic that knows no plugin, no job and no round: names, amounts and the rules of each queue go in.

Read `account` (the sums and limits of one queue), then `tree` (queues below queues), `filling` (what queues deserve by
weight), `share_tree` (dominant shares along paths) and `changes` (what is ending, and what is only simulated).
"""
