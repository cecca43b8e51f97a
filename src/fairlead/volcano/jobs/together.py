"""Which pods of a Volcano Job compute only together: those of a Job with the plugin `mpi`, `pytorch` or `ray`.

Such a program exchanges messages in every step, so that a worker beside too few others waits. The simulated kubelets
read this (`Family.run_together`); the annotation `fairlead.io/run-together` on a pod counts before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.volcano.jobs.job_pods import JOB_NAME
from fairlead.volcano.kinds import VC_JOB

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView

_EXCHANGING = frozenset({"mpi", "pytorch", "ray"})


def run_together(pod: Doc, view: DocView) -> int:
    """How many pods of the pod's Job have to run for it to compute; 0 if it computes alone."""
    metadata = pod["metadata"]
    name = (metadata.get("annotations") or {}).get(JOB_NAME)
    job = view.get(VC_JOB, metadata["namespace"], name) if name else None
    if job is None or _EXCHANGING.isdisjoint(job["spec"].get("plugins") or ()):
        return 0
    needed: int = job["spec"].get("minAvailable") or 0
    return needed
