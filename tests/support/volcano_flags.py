"""The setup that Volcano's flags on a command line come to."""

from __future__ import annotations

from typing import Any

import click
from click.testing import CliRunner

from fairlead.volcano.cli.flags import volcano_options, volcano_setup
from fairlead.volcano.config.setup import VolcanoSetup


def flags(*arguments: str) -> VolcanoSetup | None:
    """The setup of a command line with these arguments, None if none of the flags is given."""
    found: list[VolcanoSetup | None] = []

    @click.command()
    @volcano_options
    def command(**given: Any) -> None:
        found.append(volcano_setup(given))

    result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return found[0]
