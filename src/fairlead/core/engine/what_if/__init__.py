"""Answers about what would happen: will it run, what would help, whom would it cost, how much still fits.

Every answer comes from the Scheduler itself. A question is put to a copy of it (runtime/copies.py makes one), objects
are added to the copy or changed, and its `step` decides as it always does; nothing here filters or scores. Reading
order: `trial.py` lets a copy go on, `simulate.py` asks whether something would run, `capacity.py` how much,
`least_change.py` what would help.

Modules: answers, cluster_changes, edits, families, node_shapes, rollout, sources, trial_claims, victims, workload.
"""
