"""The command `fairlead`, also as `kubectl fairlead`. Each command lives in a module that is imported when it is used.

That keeps `--help`, completion and `version` instant: NumPy, aiohttp and the scheduler are loaded by what needs them.
Errors that fairlead raises on purpose end here as one line on standard error and exit code 1; wrong usage, and an input
file that cannot be used, are 2.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import click

from fairlead import __version__
from fairlead.errors import ConfigError, FairleadError, ScenarioError
from fairlead.runtime.collecting import collect_rarely


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """Where a command is, and its line in the help: known without importing it."""

    target: str
    help: str


COMMANDS: Mapping[str, CommandEntry] = {
    "up": CommandEntry("fairlead.cli.up:up_command", "Start a cluster in this terminal and write a kubeconfig for it."),
    "demo": CommandEntry("fairlead.cli.demo:demo_command", "Watch 500 pods find their place on 100 simulated nodes."),
    "scheduler": CommandEntry(
        "fairlead.cli.scheduler:scheduler_command", "Schedule the pods of a cluster, in kube-scheduler's place."
    ),
    "controllers": CommandEntry(
        "fairlead.volcano.cli.controllers:controllers_command",
        "Run Volcano's controllers, in vc-controller-manager's place.",
    ),
    "descheduler": CommandEntry(
        "fairlead.koordinator.descheduling.command:descheduler_command",
        "Move pods off overloaded nodes, in koord-descheduler's place.",
    ),
    "job": CommandEntry(
        "fairlead.volcano.jobs.cli.commands:job_group", "Run, view, follow, suspend and delete Volcano Jobs."
    ),
    "roles": CommandEntry("fairlead.cli.roles.command:roles_command", "Print the roles that a way of running needs."),
    "vcctl": CommandEntry(
        "fairlead.volcano.vcctl.command:vcctl_command", "Take vcctl's arguments and print what it does."
    ),
    "explain": CommandEntry(
        "fairlead.cli.explain.commands:explain_group", "Say why a pod is where it is, or why it waits."
    ),
    "simulate": CommandEntry(
        "fairlead.cli.what_if.simulate:simulate_command",
        "Say whether objects would run, where, and whom they would cost.",
    ),
    "evictions": CommandEntry(
        "fairlead.cli.what_if.evictions:evictions_command", "List who was evicted, for whom, and what it cost."
    ),
    "capacity": CommandEntry(
        "fairlead.cli.what_if.capacity:capacity_group", "Say how much still fits, which nodes to add, which can go."
    ),
    "status": CommandEntry(
        "fairlead.cli.status.command:status_command",
        "Show how a running scheduler is doing.",
    ),
    "quota": CommandEntry(
        "fairlead.koordinator.quotas.command:quota_group",
        "List Koordinator's quotas; show what one may use, uses and lends.",
    ),
    "queue": CommandEntry(
        "fairlead.volcano.queues.command:queue_group", "List queues; show what one holds, may hold, and why."
    ),
    "nodes": CommandEntry("fairlead.cli.nodes:nodes_group", "Add, remove, fail and recover simulated nodes."),
    "bug-report": CommandEntry("fairlead.cli.bugreport:bug_report_command", "Pack what a bug report needs, redacted."),
    "config": CommandEntry(
        "fairlead.cli.config_commands:config_group", "Check, show and compare scheduler configuration files."
    ),
    "snapshot": CommandEntry("fairlead.cli.snapshot:snapshot_group", "Save a cluster's state; start others from it."),
    "record": CommandEntry("fairlead.cli.record:record_command", "Write down the decisions made in a live cluster."),
    "replay": CommandEntry(
        "fairlead.cli.replay:replay_command", "Decide recorded decisions again and show what differs."
    ),
    "lab": CommandEntry(
        "fairlead.cli.lab.command:lab_group", "Run experiments of the literature and compare with recorded runs."
    ),
    "version": CommandEntry("fairlead.cli.about:version_command", "Print the version."),
    "completion": CommandEntry("fairlead.cli.about:completion_command", "Print the completion script of a shell."),
}


class _UnusableInput(click.ClickException):
    """An input file that cannot be used ends like wrong arguments; everything else that goes wrong is 1."""

    exit_code = 2


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else _imported(entry.target)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean '{near[0]}'?" if near else ""))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except FairleadError as error:
            unusable = isinstance(error, ConfigError | ScenarioError)
            raise (_UnusableInput if unusable else click.ClickException)(str(error)) from error


def _imported(target: str) -> click.Command:
    module, _, name = target.partition(":")
    command = getattr(importlib.import_module(module), name)
    assert isinstance(command, click.Command)
    return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", message="fairlead %(version)s")
def cli() -> None:
    """A cluster scheduler with a Kubernetes API of its own: no cluster needed.

    \b
      fairlead demo                      see it work
      fairlead up --nodes 100            a cluster of simulated nodes, until Ctrl-C
      kubectl --kubeconfig fairlead.kubeconfig get nodes
    """


def main() -> None:
    collect_rarely()  # a command has the process for itself
    try:
        cli(prog_name=program_name(sys.argv[0]))
    except KeyboardInterrupt:
        # A second Ctrl-C, while the first is still being carried out.
        os._exit(130)


def program_name(path: str) -> str:
    """As the user typed it: kubectl runs its plugins by their file names."""
    name = os.path.basename(path)
    return "kubectl fairlead" if name.startswith("kubectl-") else "fairlead"
