"""Accelerator cards of nodes, for any plugin that shares them: no plugin, task or round is known here.

Read `table` (the cards of all nodes as arrays, and what is used of them), `requests` (what containers want), `sharing`
(which cards a request gets), `mig` (cards that are partitioned) and `holdings` (who holds what, and who is about to
give it back).
"""
