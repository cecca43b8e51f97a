"""The placement policies by the names of the reference files, each as a profile of scheduling plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from fairlead.core.framework.profile import Profile, profile_of
from fairlead.gpu_share.fgd import FgdScore
from fairlead.gpu_share.packing import BestFitScore, DotProductScore, GpuClusteringScore, GpuPackingScore
from fairlead.gpu_share.scarcity import ScarcityScore
from fairlead.gpu_share.share import GpuShare
from fairlead.kube.resources.plugin import NodeResourcesFit

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.plugin import Plugin
    from fairlead.gpu_share.fragmentation import TypicalPod
    from fairlead.gpu_share.gpu_shares import GpuRequest, GpuShares

PluginMaker: TypeAlias = "Callable[[Sequence[TypicalPod]], tuple[Plugin, ...]]"


def _any_as_the_original_draws(cycle: Cycle, shares: GpuShares, row: int, request: GpuRequest) -> int:
    """Any GPU that fits, with as many draws as the original makes: the nth that fits is taken instead of those before
    it with a probability of 1/n."""
    chosen = fitting = 0
    for gpu, milli in enumerate(shares.free[row].tolist()):
        if milli >= request.milli:
            fitting += 1
            if cycle.rng.randrange(fitting) == 0:
                chosen = gpu
    return chosen


def _fgd(typical: Sequence[TypicalPod]) -> tuple[Plugin, ...]:
    score = FgdScore(typical)
    return GpuShare(score.choose), score


_POLICIES: Mapping[str, PluginMaker] = {
    "01-Random": lambda typical: (GpuShare(_any_as_the_original_draws),),
    "02-DotProd": lambda typical: (GpuShare(), DotProductScore()),
    "03-GpuClustering": lambda typical: (GpuShare(), GpuClusteringScore()),
    "04-GpuPacking": lambda typical: (GpuShare(), GpuPackingScore()),
    "05-BestFit": lambda typical: (GpuShare(), BestFitScore()),
    "06-FGD": _fgd,
}
POLICY_NAMES = tuple(_POLICIES)
RANDOM, FGD = "01-Random", "06-FGD"
SCARCITY = "Scarcity"
"""Our own: what is scarce for typical pods with GPUs has a price."""
_OWN: Mapping[str, PluginMaker] = {SCARCITY: lambda typical: (GpuShare(), ScarcityScore(typical))}


def policy_profile(name: str, typical: Sequence[TypicalPod]) -> Profile:
    """Filters by cpu, memory and GPUs, and the score of the policy alone."""
    plugins = {**_POLICIES, **_OWN}[name](typical)
    fit = NodeResourcesFit()
    profile = profile_of(name, (fit, *plugins))
    points = {point: tuple(p for p in at if p is not fit or point != "score") for point, at in profile.points.items()}
    return Profile(name=name, points=points)
