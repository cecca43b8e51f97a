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
            unusable = isinstance(error, ConfigError | ScenarioError)
            raise (_UnusableInput if unusable else click.ClickException)(str(error)) from error
