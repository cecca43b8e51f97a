"""The cluster as a table with one row per node, and the ways to change it.

Reading order: table (columns), cluster (what is known, and what a change does to it), statement and trial_overlay (the
two ways to try placements), touchlog (which rows changed), object_index and pod_states; then the indices that plugins
read, one subject each: affinity, domains, ports, volumes, devices, gangs, quotas/, cards/, numa/.

Further modules: audit, images, index_calls, matching, nodes, owned, preemptions, tree.
"""
