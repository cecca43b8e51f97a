"""`fairlead evictions`: who was evicted, for whom, and what it cost; also of pods that are gone.

The scheduler keeps the last 10,000 evictions for as long as it runs. Names in other namespaces are shown only with
`--all-namespaces`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.what_if.asking import asking_options, own_namespace, print_answer, put_question, whom

if TYPE_CHECKING:
    from rich.console import Console


@click.command("evictions")
@click.option("-n", "--namespace", default="", help="Default: the one of the kubeconfig's context.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Evictions of all namespaces, with all names.")
@asking_options
def evictions_command(namespace: str, everywhere: bool, output: str, **options: Any) -> None:
    """List the evictions that the scheduler made, the newest first."""
    asked = whom(options)
    about = "" if everywhere else namespace or own_namespace(asked)
    print_answer(put_question(asked, {"kind": "EvictionsQuestion", "namespace": about}), output, _show)


def _show(console: Console, answer: dict[str, Any]) -> None:
    if not answer["items"]:
        console.print("no evictions")
    for one in answer["items"]:
        sake = f" for {one['beneficiary']}" if one["beneficiary"] else ""
        cost = f"{one['lostSeconds']:g} s of work lost"
        text = f"{one['at']} {one['namespace']}/{one['name']} on {one['node']}{sake}: {one['rule']}; {cost}"
        console.print(text)
