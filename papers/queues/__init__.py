"""Batch policies on a pool of equal GPUs: queues, backfilling, preemption by remaining or attained time.

Reading order: `pool.py` has the jobs, the pool and the events; `first_come.py` the policies that never preempt,
`backfill.py` those with reservations, `preemptive.py` those that sort all jobs anew at each event, `attained.py` those
by attained service; `policies.py` names them all.
"""
