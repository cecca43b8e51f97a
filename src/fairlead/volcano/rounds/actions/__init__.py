"""The actions of a Volcano round, one module each; `action_table` beside this package lists them by name.

Reading order: worksheet (queues, jobs and tasks in their order) and placing (one task), then allocate, enqueue and
backfill; making_room with reclaim, preempt and preempt_dry_run; domains for jobs that want one rack; bundles and
gang_eviction for gangpreempt and gangreclaim; shuffle.
"""
