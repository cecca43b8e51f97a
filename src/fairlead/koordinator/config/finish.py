"""finish: what a profile with plugins of Koordinator's needs: the quirks that are kept, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.koordinator.family import FAMILY
from fairlead.koordinator.gates import COMPATIBLE
from fairlead.koordinator.records.quirks import KOORDINATOR_FIXED, KOORDINATOR_ORIGINAL, KoordinatorQuirks
from fairlead.kube.config.plugin_args import FamilyArgs, NodeResourcesBalancedAllocationArgs

if TYPE_CHECKING:
    from fairlead.kube.config.finish import Finish
    from fairlead.kube.config.gates import Gates
    from fairlead.kube.config.plugin_args import Args
    from fairlead.kube.config.records import KubeProfile

_RESERVATION = "Reservation"


@dataclass(frozen=True, slots=True)
class KoordinatorArgs(FamilyArgs):
    """What a plugin of Koordinator is made of: the fields of the file, the gates that are on, and the slips that are
    kept."""

    gates: Gates
    quirks: KoordinatorQuirks


def finish(profile: KubeProfile, context: Finish) -> KubeProfile:
    """The profile with arguments of Koordinator's own form, and with Reservation under `reserve`, where the shipped
    configuration leaves it out. Among the settings may be KoordinatorQuirks; otherwise all are kept or none."""
    quirks = next((one for one in context.settings if isinstance(one, KoordinatorQuirks)), None)
    if quirks is None:
        kept = context.compatible or COMPATIBLE in context.gates
        quirks = KOORDINATOR_ORIGINAL if kept else KOORDINATOR_FIXED
    points = dict(profile.points)
    if not quirks.reservation_not_reserved and _lists(profile, "filter") and not _lists(profile, "reserve"):
        points["reserve"] = ((_RESERVATION, 0), *points.get("reserve", ()))
    args: dict[str, Args] = dict(profile.args)
    for name in FAMILY.plugins.keys() & profile.listed:
        written = args.get(name, {})
        assert isinstance(written, Mapping), "they are read by the plugin's factory"
        args[name] = KoordinatorArgs(written, context.gates, quirks)
    balance = args.get("NodeResourcesBalancedAllocation")
    if quirks.balances_without_gain and isinstance(balance, NodeResourcesBalancedAllocationArgs):
        args["NodeResourcesBalancedAllocation"] = replace(balance, by_gain=False)
    return replace(profile, points=points, args=args)


def _lists(profile: KubeProfile, point: str) -> bool:
    return any(name == _RESERVATION for name, _ in profile.points.get(point, ()))
