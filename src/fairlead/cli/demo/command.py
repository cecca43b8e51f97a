"""`fairlead demo`: three scenes, each in a cluster of its own in this process.

The first runs in real time, so that its speed is true. The others run on virtual time, where an hour takes a second.
Each raises FairleadError if what it shows does not happen, so that the command is a check of an installation as well.
"""

from __future__ import annotations

import click

from fairlead.console.terminal import line, log_to_stderr, output


@click.command("demo")
@click.option("-v", "--verbose", count=True, help="Say more about what happens (twice: everything).")
def demo_command(verbose: int) -> None:
    """Show 500 pods on 100 simulated nodes, a gang that waits, and two queues that share.

    Everything runs in this process and nothing is left behind.
    """
    from fairlead.cli.demo.crowd import show_crowd
    from fairlead.cli.demo.gang import show_gang
    from fairlead.cli.demo.queues import show_queues

    log_to_stderr(verbose)
    console = output()
    console.print(line(("1. 500 pods on 100 nodes", "bold"), ", in real time"))
    show_crowd(console)
    console.print(line(("\n2. A gang starts whole or not at all", "bold"), ", on four nodes of 8 GPUs"))
    show_gang(console)
    console.print(line(("\n3. Two queues share 32 GPUs", "bold"), ", as Volcano's queues do"))
    show_queues(console)
    console.print(line("\nA cluster to keep, for kubectl: ", ("fairlead up", "bold")))
