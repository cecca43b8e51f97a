"""`fairlead roles WAY`: the roles that a way of running needs, as YAML for kubectl."""

from __future__ import annotations

import click

from fairlead.cli.roles.ways import EXTRAS, WAYS


@click.command("roles")
@click.argument("way", type=click.Choice(list(WAYS)))
@click.option("--name", metavar="NAME", help="Name of the roles.  [default: fairlead-WAY]")
@click.option("--lease-namespace", metavar="NAME", help="Where its lease is.  [default: where WAY has it]")
@click.option("--lease-name", metavar="NAME", help="Its lease.  [default: that of WAY]")
@click.option(
    "--with",
    "extras",
    multiple=True,
    type=click.Choice(list(EXTRAS)),
    help="Further rights: gangs by owner, shared accelerator cards, replacing refused bare "
    "pods, keeping evictions in a ConfigMap.",
)
@click.option("--for", "user", metavar="NAMESPACE:ACCOUNT", help="Also bind them to this service account.")
def roles_command(
    way: str,
    name: str | None,
    lease_namespace: str | None,
    lease_name: str | None,
    extras: tuple[str, ...],
    user: str | None,
) -> None:
    """Print the roles that a way of running needs, no more and no less.

    \b
      second       beside kube-scheduler, for pods that name it
      default      in kube-scheduler's place
      volcano      in Volcano's place, with its controllers
      both         the two in one process
      shards       several active replicas with the Volcano profile
      controllers  Volcano's controllers alone
      koordinator  in koord-scheduler's place
      descheduler  in koord-descheduler's place, alone
      reader       commands that only look

    \b
      fairlead roles second --for fairlead-system:fairlead | kubectl apply -f -
    """
    import yaml

    from fairlead.cli.roles.documents import bindings, role_documents

    namespace, own = WAYS[way].lease
    lease = (lease_namespace or namespace, lease_name or own)
    roles = role_documents(way, name=name or f"fairlead-{way}", lease=lease, extras=extras)
    if user is not None:
        namespace, colon, account = user.partition(":")
        if not colon:
            raise click.BadParameter(f"{user} is not NAMESPACE:ACCOUNT", param_hint="'--for'")
        subject = {"kind": "ServiceAccount", "namespace": namespace, "name": account}
        roles += bindings(roles, subject)
    click.echo(yaml.safe_dump_all(roles, sort_keys=False), nl=False)
