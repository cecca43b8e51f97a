"""The profile without a configuration file: kube-scheduler's default, with gangs, and with every node scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.config.assemble import profiles_of
from fairlead.config.gates import OWN_GATES
from fairlead.config.kube import default_kube_config

if TYPE_CHECKING:
    from fairlead.config.gates import Gates
    from fairlead.framework.profile import Profile


def first_profile(gates: Gates = OWN_GATES) -> Profile:
    (profile,) = profiles_of(default_kube_config(gates=gates))
    return profile
