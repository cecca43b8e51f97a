"""`fairlead lab`: runs scenarios and races of schedulers in virtual time, and reports what they show."""

from __future__ import annotations

import click

from fairlead.cli.lab.racing import omega_command
from fairlead.cli.lab.scenarios import experiment_command, report_command, run_command, schema_command
from fairlead.runtime.collecting import ALLOCATIONS_OF_EXPERIMENTS, collect_rarely


@click.group("lab")
def lab_group() -> None:
    """Play scenarios in virtual time, and several schedulers on one cell."""
    collect_rarely(ALLOCATIONS_OF_EXPERIMENTS)


for command in (run_command, experiment_command, report_command, schema_command, omega_command):
    lab_group.add_command(command)
