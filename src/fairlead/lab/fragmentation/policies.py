"""The placement policies by the names of the reference files, each as a profile of scheduling plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from fairlead.framework.profile import Profile, profile_of
from fairlead.plugins.gpu_share.fgd import FgdScore
from fairlead.plugins.gpu_share.packing import BestFitScore, DotProductScore, GpuClusteringScore, GpuPackingScore
from fairlead.plugins.gpu_share.share import GpuShare, any_fitting
from fairlead.plugins.resources import NodeResourcesFit

if TYPE_CHECKING:
    from fairlead.framework.plugin import Plugin
    from fairlead.plugins.gpu_share.fragmentation import TypicalPod

PluginMaker: TypeAlias = "Callable[[Sequence[TypicalPod]], tuple[Plugin, ...]]"


def _fgd(typical: Sequence[TypicalPod]) -> tuple[Plugin, ...]:
    score = FgdScore(typical)
    return GpuShare(score.choose), score


_POLICIES: Mapping[str, PluginMaker] = {
    "01-Random": lambda typical: (GpuShare(any_fitting),),
    "02-DotProd": lambda typical: (GpuShare(), DotProductScore()),
    "03-GpuClustering": lambda typical: (GpuShare(), GpuClusteringScore()),
    "04-GpuPacking": lambda typical: (GpuShare(), GpuPackingScore()),
    "05-BestFit": lambda typical: (GpuShare(), BestFitScore()),
    "06-FGD": _fgd,
}
POLICY_NAMES = tuple(_POLICIES)
RANDOM, FGD = "01-Random", "06-FGD"
FGD_CPU_FIT = "FGD-CpuFit"
"""Our own: FGD's whole numbers make many ties. Of pods without GPUs, the node that is left with the least takes them;
of others the first by name, which keeps GPUs of a model together."""
_OWN: Mapping[str, PluginMaker] = {FGD_CPU_FIT: lambda typical: (*_fgd(typical), BestFitScore(only_without_gpu=True))}
_WEIGHTS = {FGD_CPU_FIT: {"FGDScore": 1000, "BestFitScore": 1}}


def policy_profile(name: str, typical: Sequence[TypicalPod]) -> Profile:
    """Filters by cpu, memory and GPUs, and the score of the policy alone."""
    plugins = {**_POLICIES, **_OWN}[name](typical)
    fit = NodeResourcesFit()
    profile = profile_of(name, (fit, *plugins))
    points = {point: tuple(p for p in at if p is not fit or point != "score") for point, at in profile.points.items()}
    return Profile(name=name, points=points, weights=_WEIGHTS.get(name, {}))
