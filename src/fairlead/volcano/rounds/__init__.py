"""Volcano's scheduling mode: sessions that look at all jobs together, here called rounds.

Reading order: driver (when a round starts, and its slices), opening (jobs, tasks and queues of a round), action_table
(the configured actions) and actions/, node_search (predicates and scores for one task), transaction (placements that
can be taken back), closing and writes (phases, conditions, events), shards (whose nodes are whose), tally (metrics).

Further modules: arguments, attachable, eviction_log, fit, goheap, job, narrowing, network, pace, partition, requests,
round_resources, settings, tier_plugin, tiers, trial_overlay, written.
"""
