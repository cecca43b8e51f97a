"""The profile without a configuration file: kube-scheduler's default, with gangs, and with every node scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.assembly.assemble import profiles_of
from fairlead.kube.config.gates import OWN_GATES
from fairlead.kube.config.kube import default_kube_config

if TYPE_CHECKING:
    from fairlead.core.framework.profile import Profile
    from fairlead.kube.config.gates import Gates


def first_profile(gates: Gates = OWN_GATES) -> Profile:
    (profile,) = profiles_of(default_kube_config(gates=gates))
    return profile
