"""The columns of the six tables of a run. A column, once there, keeps its name, type and meaning.

Times are seconds since the start of the run; what did not happen is null.
"""

from __future__ import annotations

from collections.abc import Mapping

SCHEMA_VERSION = 1

TEXT, NUMBER, WHOLE = "string", "float64", "int64"

TABLES: Mapping[str, Mapping[str, str]] = {
    "jobs": {
        "job": TEXT, "class": TEXT, "queue": TEXT, "user": TEXT, "priority": WHOLE, "pods": WHOLE, "minimum": WHOLE,
        "cpu": NUMBER, "memory": NUMBER, "gpu": NUMBER, "duration": NUMBER,
        "arrived": NUMBER, "placed": NUMBER, "started": NUMBER, "ended": NUMBER,
        "succeeded": WHOLE, "failed": WHOLE, "evicted": WHOLE, "lost_seconds": NUMBER,
    },
    "pods": {
        "pod": TEXT, "job": TEXT, "node": TEXT, "created": NUMBER, "placed": NUMBER, "started": NUMBER,
        "ended": NUMBER, "outcome": TEXT,
    },
    "nodes": {
        "node": TEXT, "zone": TEXT, "rack": TEXT, "cpu": NUMBER, "memory": NUMBER, "gpu": NUMBER,
        "failures": WHOLE, "silent_seconds": NUMBER,
    },
    "queues": {
        "queue": TEXT, "parent": TEXT, "weight": WHOLE, "deserved_cpu": NUMBER, "deserved_memory": NUMBER,
        "deserved_gpu": NUMBER, "capability_cpu": NUMBER,
    },
    "decisions": {"time": NUMBER, "pod": TEXT, "decision": TEXT, "node": TEXT, "reason": TEXT},
    "samples": {"time": NUMBER, "scope": TEXT, "measure": TEXT, "value": NUMBER},
}  # fmt: skip
"""`placed` of a job is when its minimum had nodes, `started` when its minimum ran. Amounts of jobs are those of all
pods together; `gpu` counts GPUs, shared ones by their part. `outcome` of a pod is succeeded, failed, evicted or
running. `decision` is bound, refused or evicted. The scope of a sample is `cluster` or `queue:<name>`."""
