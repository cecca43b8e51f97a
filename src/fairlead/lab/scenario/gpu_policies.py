"""The placement policies of the FGD paper as plugins of a scenario, for traces of pods that share GPUs.

Each is a function of the jobs of a run, because FGD is tuned to the most common pods among them. All of them contain
the filter that gives out GPUs, so that a policy without a score of its own (`shared_gpus`) is comparable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fairlead.model.quantity import parse_quantity
from fairlead.plugins.gpu_share.fgd import FgdScore
from fairlead.plugins.gpu_share.fragmentation import TypicalPod, typical_pods
from fairlead.plugins.gpu_share.packing import BestFitScore, GpuPackingScore
from fairlead.plugins.gpu_share.share import GpuShare
from fairlead.state.gpu_shares import gpu_request

if TYPE_CHECKING:
    from fairlead.framework.plugin import Plugin
    from fairlead.lab.scenario.jobs import LabJob


def typical_of(jobs: Iterable[LabJob]) -> tuple[TypicalPod, ...]:
    """The most common pods of a run."""
    return typical_pods(
        (parse_quantity(job.resources.get("cpu", "0")).nanos // 1_000_000, gpu_request(job.annotations)) for job in jobs
    )


def shared_gpus() -> Sequence[Plugin]:
    """Only what GPUs allow; the configuration scores."""
    return (GpuShare(),)


def fgd(jobs: Sequence[LabJob]) -> Sequence[Plugin]:
    """Fragmentation gradient descent."""
    score = FgdScore(typical_of(jobs))
    return GpuShare(score.choose), score


def best_fit() -> Sequence[Plugin]:
    """The node that is left with the least cpu and GPU."""
    return GpuShare(), BestFitScore()


def gpu_packing() -> Sequence[Plugin]:
    """Used GPUs before free ones, used nodes before idle ones."""
    return GpuShare(), GpuPackingScore()
