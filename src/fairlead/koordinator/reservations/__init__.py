"""Reservations. Reading order: `matching` (which reservations a pod may use), `fitting` (whether it fits into one),
`plugin` (what a matching pod sees on a node, scores, and what is written).

Further modules: holdings, kinds_of_pods, lacks, preallocation, preemption, shown, status, what_if.
"""
