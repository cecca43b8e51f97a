"""From the args of the plugins for shared GPUs, as a configuration has them, to the plugins.

`Open-Gpu-Share` takes `gpuSelMethod` (best, random or FGDScore); it, `FGDScore` and `ScarcityScore` take `typicalPods`,
a list of classes with `cpu`, `gpuCount`, `gpuMilli`, `gpuModels` and `weight`. The original counts them in a trace; a
scheduler that runs has none, so the file says what is typical.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlead.config.problems import suggestion
from fairlead.core.model.quantity import parse_quantity
from fairlead.errors import ConfigError
from fairlead.gpu_share.fgd import FgdScore
from fairlead.gpu_share.fragmentation import TypicalPod
from fairlead.gpu_share.gpu_shares import MOST_GPUS, WHOLE, GpuRequest
from fairlead.gpu_share.scarcity import ScarcityScore
from fairlead.gpu_share.share import GpuShare, any_fitting, fullest

if TYPE_CHECKING:
    from fairlead.kube.config.plugin_args import Args

_FIELDS = ("cpu", "gpuCount", "gpuMilli", "gpuModels", "weight")
_METHODS = ("best", "random", FgdScore.name)


def open_gpu_share(args: Args) -> GpuShare:
    given = _given(args, ("gpuSelMethod", "typicalPods"))
    method = given.get("gpuSelMethod", "best")
    if method not in _METHODS:
        raise ConfigError(f"gpuSelMethod: {method!r} must be one of {', '.join(_METHODS)}")
    if method == FgdScore.name:
        return GpuShare(FgdScore(_typical(given)).choose)
    return GpuShare(any_fitting if method == "random" else fullest)


def fgd_score(args: Args) -> FgdScore:
    return FgdScore(_typical(_given(args, ("typicalPods",))))


def scarcity_score(args: Args) -> ScarcityScore:
    return ScarcityScore(_typical(_given(args, ("typicalPods",))))


def _given(args: Args, known: tuple[str, ...]) -> dict[str, Any]:
    given = dict(args) if isinstance(args, Mapping) else {}
    given.pop("apiVersion", None)
    given.pop("kind", None)
    for field in given:
        if field not in known:
            raise ConfigError(f'unknown field "{field}"', hint=suggestion(field, known))
    return given


def _typical(given: Mapping[str, Any]) -> list[TypicalPod]:
    listed = given.get("typicalPods") or []
    if not isinstance(listed, list):
        raise ConfigError(f"typicalPods: not a list: {listed!r}")
    pods = [_typical_pod(entry, f"typicalPods[{index}]") for index, entry in enumerate(listed)]
    total = sum(pod.weight for pod in pods)
    return [TypicalPod(pod.cpu, pod.gpu, pod.weight / total) for pod in pods]


def _typical_pod(entry: Any, where: str) -> TypicalPod:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where}: not a class of pods: {entry!r}", hint=f"give {', '.join(_FIELDS)}")
    for field in entry:
        if field not in _FIELDS:
            raise ConfigError(f'{where}: unknown field "{field}"', hint=suggestion(str(field), _FIELDS))
    count = _number(entry, "gpuCount", 0, 0, MOST_GPUS, where)
    milli = _number(entry, "gpuMilli", WHOLE, 1, WHOLE, where)
    if count > 1 and milli < WHOLE:
        raise ConfigError(f"{where}.gpuMilli: {milli} of each of {count} GPUs; parts can be had of one GPU only")
    models = entry.get("gpuModels") or []
    if not isinstance(models, list) or not all(isinstance(model, str) for model in models):
        raise ConfigError(f"{where}.gpuModels: not a list of names: {models!r}")
    weight = entry.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or weight <= 0:
        raise ConfigError(f"{where}.weight: not a positive number: {weight!r}")
    try:
        cpu = parse_quantity(entry.get("cpu", 0)).milli()
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{where}.cpu: {error}") from None
    return TypicalPod(cpu, GpuRequest(count, milli if count else 0, tuple(models)), float(weight))


def _number(entry: Mapping[str, Any], field: str, default: int, low: int, high: int, where: str) -> int:
    value = entry.get(field, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{where}.{field}: {value!r} is no number from {low} to {high}")
    return value
