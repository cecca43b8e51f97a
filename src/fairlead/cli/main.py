"""The command `fairlead`, also as `kubectl fairlead`. Each command lives in a module that is imported when it is used.

That keeps `--help`, completion and `version` instant: NumPy, aiohttp and the scheduler are loaded by what needs them.
Commands of families are in their records (`Family.commands`).
Errors that fairlead raises on purpose end here as one line on standard error and exit code 1; wrong usage, and an input
file that cannot be used, are 2.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

import click

from fairlead import __version__
from fairlead.console.command_group import FairleadGroup
from fairlead.core.family import CommandEntry, Family, families, resolve
from fairlead.runtime.collecting import examine_rarely

_OWN: Mapping[str, CommandEntry] = {
    "up": CommandEntry("fairlead.cli.up:up_command", "Start a cluster in this terminal and write a kubeconfig for it."),
    "demo": CommandEntry(
        "fairlead.cli.demo.command:demo_command", "Show 500 pods on 100 nodes, a gang, and two queues."
    ),
    "scheduler": CommandEntry(
        "fairlead.cli.scheduler:scheduler_command", "Schedule the pods of a cluster, in kube-scheduler's place."
    ),
    "roles": CommandEntry("fairlead.cli.roles.command:roles_command", "Print the roles that a way of running needs."),
    "explain": CommandEntry(
        "fairlead.cli.explain.commands:explain_group", "Say why a pod is where it is, or why it waits."
    ),
    "simulate": CommandEntry(
        "fairlead.cli.what_if.simulate:simulate_command",
        "Say whether objects would run, where, and which pods would be evicted.",
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
    "nodes": CommandEntry("fairlead.cli.nodes:nodes_group", "Add, remove, fail and recover simulated nodes."),
    "bug-report": CommandEntry("fairlead.cli.bugreport:bug_report_command", "Pack what a bug report needs, redacted."),
    "config": CommandEntry(
        "fairlead.cli.config_commands:config_group", "Check, show and compare scheduler configuration files."
    ),
    "plugin": CommandEntry("fairlead.cli.plugin_new:plugin_group", "Begin a scheduling plugin: a package with a test."),
    "snapshot": CommandEntry("fairlead.cli.snapshot:snapshot_group", "Save a cluster's state; start others from it."),
    "journal": CommandEntry(
        "fairlead.cli.journal:journal_group", "Check and repair a data directory of `fairlead up`."
    ),
    "record": CommandEntry("fairlead.cli.record:record_command", "Write down the decisions made in a live cluster."),
    "replay": CommandEntry(
        "fairlead.cli.replay:replay_command", "Decide recorded decisions again and show what differs."
    ),
    "lab": CommandEntry("fairlead.cli.lab.command:lab_group", "Play experiments in virtual time and report on them."),
    "version": CommandEntry("fairlead.cli.about:version_command", "Print the version."),
    "completion": CommandEntry("fairlead.cli.about:completion_command", "Print the completion script of a shell."),
}


def with_commands_of(families: Iterable[Family], own: Mapping[str, CommandEntry] = _OWN) -> dict[str, CommandEntry]:
    """Fairlead's own commands with those of families, in the order of the list that `--help` prints."""
    added: dict[str, CommandEntry] = {}
    for family in families:
        added |= {name: entry for name, entry in family.commands.items() if name not in added and name not in own}
    ordered: dict[str, CommandEntry] = {}
    for place, entry in own.items():
        ordered |= {name: one for name, one in added.items() if one.before == place}
        ordered[place] = entry
        ordered |= {name: one for name, one in added.items() if one.after == place}
    return ordered | {name: one for name, one in added.items() if name not in ordered}


COMMANDS: Mapping[str, CommandEntry] = with_commands_of(families())


class LazyGroup(FairleadGroup):
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
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean '{near[0]}'?" if near else ""))
        return super().resolve_command(ctx, args)


def _imported(target: str) -> click.Command:
    command = resolve(target)
    assert isinstance(command, click.Command)
    return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", message="fairlead %(version)s")
def cli() -> None:
    """Schedule the pods of a cluster, or run a whole cluster in this terminal: none is needed.

    \b
      fairlead demo                      see it work
      fairlead up --nodes 100            a cluster of simulated nodes, until Ctrl-C
      kubectl --kubeconfig fairlead.kubeconfig get nodes
    """


def main() -> None:
    examine_rarely()  # a command has the process for itself
    try:
        cli(prog_name=program_name(sys.argv[0]))
    except KeyboardInterrupt:
        # A second Ctrl-C, while the first is still being carried out.
        os._exit(130)


def program_name(path: str) -> str:
    """As the user typed it: kubectl runs its plugins by their file names."""
    name = os.path.basename(path)
    return "kubectl fairlead" if name.startswith("kubectl-") else "fairlead"
