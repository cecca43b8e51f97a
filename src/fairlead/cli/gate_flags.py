"""`--feature-gates` for all commands that have it.

The flag changes defaults that depend on the command: Kubernetes' own on somebody's cluster, and with gangs on in ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from fairlead.errors import ConfigError
from fairlead.koordinator.gates import COMPATIBLE
from fairlead.kube.config.gates import (
    DEFAULT_GATES,
    KUBE_COMPATIBLE,
    Gates,
    parse_feature_gates,
)

Command = TypeVar("Command", bound=Callable[..., Any])


def gates_option(words: str, *, defaults: Gates = DEFAULT_GATES) -> Callable[[Command], Command]:
    """Gives a command its gates as the argument `gates`."""

    def parsed(context: click.Context, parameter: click.Parameter, value: str) -> Gates:
        try:
            return parse_feature_gates(value, defaults=defaults)
        except ConfigError as error:
            raise click.BadParameter(str(error), context, parameter) from None

    return click.option("--feature-gates", "gates", callback=parsed, default="", metavar="GATES", help=words)


def compatible_option(command: Command) -> Command:
    """Gives a command `--kube-compatible` and `--koordinator-compatible`."""
    words = "Keep behaviours of Koordinator's scheduler that are mended otherwise (docs/koordinator-parity.md)."
    command = click.option("--koordinator-compatible", is_flag=True, help=words)(command)
    words = "Keep bugs of kube-scheduler that are mended otherwise (docs/claims.md lists them)."
    return click.option("--kube-compatible", is_flag=True, help=words)(command)


def with_compatibility(flags: dict[str, Any]) -> Gates:
    """The gates of a command with what those two flags add; the flags are taken out."""
    said = {KUBE_COMPATIBLE: flags.pop("kube_compatible"), COMPATIBLE: flags.pop("koordinator_compatible")}
    gates: Gates = flags["gates"]
    return gates | {gate for gate, kept in said.items() if kept}
