"""Rules for the volumes of a pod: unique names, one source each, and what the common sources cannot be without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.cluster.admission.names import dns_label

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc

_NEEDED = {
    "secret": "secretName", "persistentVolumeClaim": "claimName", "hostPath": "path", "configMap": "name",
    "csi": "driver", "nfs": "server",
}  # fmt: skip


def check_volumes(problems: ValidationProblems, path: str, volumes: list[Doc]) -> None:
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", volume.get("name", "")
        _check_sources(problems, here, volume)
        if not name:
            problems.required(f"{here}.name")
        elif complaints := dns_label(name):
            problems.each_invalid(f"{here}.name", name, complaints)
        if name in seen:
            problems.duplicate(f"{here}.name", name)
        seen.add(name)


def _check_sources(problems: ValidationProblems, path: str, volume: Doc) -> None:
    sources = [key for key in volume if key != "name"]
    if not sources:
        problems.required(path, "must specify a volume type")
    # The server looks at the sources in a fixed order, emptyDir first, and complains of all but the first.
    for extra in sorted(sources, key=lambda key: (key != "emptyDir", key))[1:]:
        problems.forbidden(f"{path}.{extra}", "may not specify more than 1 volume type")
    if len(sources) == 1:
        needed = _NEEDED.get(sources[0])
        if needed and not volume[sources[0]].get(needed):
            problems.required(f"{path}.{sources[0]}.{needed}")
