"""The placement policies of the FGD paper as plugins of a scenario, for traces of pods that share GPUs.

Each is a function of the jobs of a run, because FGD is tuned to the most common pods among them. All of them contain
the filter that gives out GPUs, so that a policy without a score of its own (`shared_gpus`) is comparable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.quantity import parse_quantity
from fairlead.gpu_share.fgd import FgdScore
from fairlead.gpu_share.fragmentation import TypicalPod, typical_pods
from fairlead.gpu_share.gpu_shares import gpu_request
from fairlead.gpu_share.packing import BestFitScore, DotProductScore, GpuClusteringScore, GpuPackingScore
from fairlead.gpu_share.scarcity import ScarcityScore
from fairlead.gpu_share.share import GpuShare, any_fitting

if TYPE_CHECKING:
    from fairlead.core.framework.plugin import Plugin
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


def scarcity(jobs: Sequence[LabJob]) -> Sequence[Plugin]:
    """The node that loses the least room for common pods with GPUs, where room is dear that few nodes have."""
    return GpuShare(), ScarcityScore(typical_of(job for job in jobs if gpu_request(job.annotations).count))


def any_gpu() -> Sequence[Plugin]:
    """Only what GPUs allow, and a shared GPU is drawn at random."""
    return (GpuShare(any_fitting),)


def dot_product() -> Sequence[Plugin]:
    """The node whose free cpu and GPU point least in the direction of the pod."""
    return GpuShare(), DotProductScore()


def gpu_clustering() -> Sequence[Plugin]:
    """Nodes that run pods of the same kind."""
    return GpuShare(), GpuClusteringScore()


def best_fit() -> Sequence[Plugin]:
    """The node that is left with the least cpu and GPU."""
    return GpuShare(), BestFitScore()


def gpu_packing() -> Sequence[Plugin]:
    """Used GPUs before free ones, used nodes before idle ones."""
    return GpuShare(), GpuPackingScore()
