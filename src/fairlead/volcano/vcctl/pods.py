"""`vcctl pod list`: the pods of Jobs, or of a queue, with kubectl's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.cluster.tables.pods import pod_cells
from fairlead.core.model.kinds import POD
from fairlead.volcano.vcctl.work import VcFault, VcWork, columns

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_JOB, _QUEUE, _QUEUE_NOTE = "volcano.sh/job-name", "volcano.sh/queue-name", "scheduling.volcano.sh/queue-name"
_SPACING, _HEADER_SPACING = 8, 2


async def list_pods(work: VcWork) -> None:
    values = work.values
    job, queue = values["job"], values["queue"]
    pods = await work.listed(POD, "" if values["all-namespaces"] else work.namespace)
    if job:
        pods = [pod for pod in pods if _label(pod, _JOB) == job]
        if queue and any(_label(pod, _QUEUE) != queue for pod in pods):
            raise VcFault(f"the input vcjob {job} does not match the queue {queue}")
    elif queue:
        pods = [pod for pod in pods if queue in (_label(pod, _QUEUE), _note(pod))]
    else:
        pods = [pod for pod in pods if _label(pod, _JOB)]
    if not pods:
        work.out("No resources found")
        return
    rows = [["Name", "Ready", "Status", "Restart", "Age"]]
    rows += [[str(cell) for cell in pod_cells(pod, work.now())[:5]] for pod in pods]
    for line in columns(rows, _SPACING, header_spacing=_HEADER_SPACING):
        work.out(line)


def _label(pod: Doc, key: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(key) or "")


def _note(pod: Doc) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(_QUEUE_NOTE) or "")
