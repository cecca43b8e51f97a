"""FairleadGroup: a group of commands in which an error that fairlead raises on purpose is one line, not a traceback."""

from __future__ import annotations

import click

from fairlead.errors import ConfigError, FairleadError, ScenarioError


class _UnusableInput(click.ClickException):
    """An input file that cannot be used ends like wrong arguments; everything else that goes wrong is 1."""

    exit_code = 2


class FairleadGroup(click.Group):
    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except FairleadError as error:
            raise (_UnusableInput if exit_code_of(error) == 2 else click.ClickException)(str(error)) from error


def exit_code_of(error: FairleadError) -> int:
    """2 for input that cannot be used, 1 for all else."""
    return 2 if isinstance(error, ConfigError | ScenarioError) else 1
