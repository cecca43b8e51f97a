"""`fairlead version` and `fairlead completion`: what the program says about itself."""

from __future__ import annotations

import json
import platform

import click
from click.shell_completion import get_completion_class

from fairlead import __version__
from fairlead.cluster.kubelets.simulated_nodes import KUBELET_VERSION


@click.command("version")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def version_command(output: str) -> None:
    """Print the version of fairlead, of Python, and of the Kubernetes API it speaks."""
    facts = {"fairlead": __version__, "kubernetes": KUBELET_VERSION, "python": platform.python_version()}
    if output == "json":
        click.echo(json.dumps(facts))
    else:
        click.echo(f"fairlead {__version__} (Kubernetes {KUBELET_VERSION}, Python {facts['python']})")


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--aliases", is_flag=True, help="Also define vsub, vjobs, vqueues, vcancel, vsuspend and vresume.")
@click.pass_context
def completion_command(context: click.Context, shell: str, aliases: bool) -> None:
    """Print the completion script of SHELL, and on request short names for `fairlead vcctl`.

    \b
      bash   source <(fairlead completion bash)
      zsh    source <(fairlead completion zsh)
      fish   fairlead completion fish | source
      bash   source <(fairlead completion bash --aliases)
    """
    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(context.find_root().command, {}, "fairlead", "_FAIRLEAD_COMPLETE").source())
    if aliases:
        from fairlead.volcano.vcctl.tree import SHORT_TOOLS

        for name in SHORT_TOOLS:
            click.echo(f"alias {name}='fairlead vcctl --as {name}'")
