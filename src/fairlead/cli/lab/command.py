"""`fairlead lab`: runs scenarios and races of schedulers in virtual time, and reports what they show."""

from __future__ import annotations

import click

from fairlead.cli.lab.racing import omega_command
from fairlead.cli.lab.scenarios import experiment_command, report_command, run_command, schema_command
from fairlead.runtime.collecting import ALLOCATIONS_OF_EXPERIMENTS, collect_rarely


@click.group("lab")
def lab_group() -> None:
    """Play scenarios in virtual time, and several schedulers on one cell.

    A policy of a scenario is a configuration of kube-scheduler (config) or of Volcano (volcano), or a batch policy by
    name (policy): fifo, easy, sjf or smallest. docs/laboratory.md describes all fields, `schema` lists them.
    """
    collect_rarely(ALLOCATIONS_OF_EXPERIMENTS)


for command in (run_command, experiment_command, report_command, schema_command, omega_command):
    lab_group.add_command(command)
