"""Where pods wait: the three queues of kube-scheduler, and what moves a pod between them.

Reading order: backlog (the queues as one object), entry (what waits), transitions (moves from queue to queue, through
the gates), queues and heap (the active queue and the backoff queue), parked (unschedulable pods), hints and requeue
(which event wakes which pod), inflight (events during an attempt), gates (PreEnqueue), nominator (room promised to
preemptors), gang_entries (groups that wait as one).

Further modules: gatewatch, standing, sweeps, tallies.
"""
