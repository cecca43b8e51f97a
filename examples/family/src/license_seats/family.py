"""The record of the family: what fairlead learns of it by the entry point `fairlead.families`.

The module imports fairlead.core.family and nothing else, because `fairlead --help` reads it. All the rest is named, and
imported where it is used.
"""

from fairlead.core.family import CommandEntry, ControllerEntry, Family, PluginEntry

FAMILY = Family(
    "license-seats",
    kinds="license_seats.kinds:READ",
    served="license_seats.kinds:SERVED",
    saved="license_seats.kinds:SERVED",
    plugins={"LicenseSeats": PluginEntry("license_seats.plugin:LicenseSeats", frozenset({"preFilter"}))},
    controllers={"license-pool-controller": ControllerEntry("license_seats.controller:LicensePools")},
    commands={"licenses": CommandEntry("license_seats.command:licenses_command", "List pools of licenses.")},
)
