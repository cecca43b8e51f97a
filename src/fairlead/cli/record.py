"""`fairlead record`: write down the decisions that are made in a live cluster, for `fairlead replay`."""

from __future__ import annotations

import asyncio
import gzip
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import orjson

from fairlead.console.cluster_access import cluster_options
from fairlead.console.scheduler_search import SchedulerChoice, server_options
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.client.credentials import Connection
    from fairlead.client.mirror import Follower
    from fairlead.core.model.flow import Doc, Watch
    from fairlead.errors import ApiError
    from fairlead.kube.replay.commit_order import CommitOrder

_PATIENCE = 3
"""How many times in a row nobody may know of a pod before explanations are no longer requested."""
_LOOK = 0.2
"""How often, in seconds, decisions that are held back are looked at."""


@click.command("record")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@cluster_options
@server_options
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after N decisions.  [default: on Ctrl-C]")
def record_command(file: Path, count: int | None, **options: Any) -> None:
    """Record the decisions of a live cluster's schedulers in FILE, until interrupted.

    \b
    Each pod that gets a node, or is newly refused, becomes one line with the whole cluster as it
    stood, gzipped if FILE ends in .gz. `fairlead replay FILE` decides them again. Reading is all
    that this does to the cluster.
    Of fairlead's own decisions the order in which they were made, the answers of extenders and the
    scores of the best two nodes are recorded too; of other schedulers these are not known.
    """
    from fairlead.client.credentials import connect

    asked = SchedulerChoice.of(options)
    connection = connect(None if asked.kubeconfig is None else str(asked.kubeconfig), asked.context)
    recording = Recording(file, count, asked)
    with suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(recording.run(connection))
    click.echo(f"recorded {recording.made} decisions in {file}; try: fairlead replay {file}")


_ANYBODY = SchedulerChoice()


class Recording:
    """A file being written."""

    def __init__(self, file: Path, count: int | None = None, asked: SchedulerChoice = _ANYBODY) -> None:
        """`asked` says which scheduler explains its decisions."""
        self._path, self._asked = file, asked
        self._count = count
        self._unknown = 0
        self.made = 0

    async def run(self, connection: Connection) -> None:
        from fairlead.client.client import KubeApi
        from fairlead.client.mirror import Mirror
        from fairlead.kube.replay.recorder import WATCHES

        _end_on_signals()
        api = KubeApi(connection)
        mirror, awake = Mirror(api, on_error=_say), asyncio.Event()
        follower = mirror.follow(WATCHES, awake.set)
        following = asyncio.create_task(mirror.run(), name="mirror")
        try:
            await self._write(follower, awake)
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
            await api.close()

    async def _write(self, follower: Follower, awake: asyncio.Event) -> None:
        from fairlead.kube.replay.commit_order import CommitOrder
        from fairlead.kube.replay.recorder import DecisionRecorder

        recorder, order = DecisionRecorder(), CommitOrder()
        while not follower.ready:
            await awake.wait()
            awake.clear()
        recorder.begin(follower.drain())
        with self._opened() as file:
            click.echo(f"recording in {self._path}; Ctrl-C ends it", err=True)
            try:
                while True:
                    for scenario in recorder.take_changes(follower.drain()):
                        await self._add(scenario, order)
                        if self._is_enough(order):
                            break
                    self._write_out(order.ready(_now()), file)
                    if self._is_enough(order):
                        break
                    await _woken(awake, at_most=_LOOK if len(order) else None)
                while len(order):
                    self._write_out(order.ready(_now()), file)
                    await asyncio.sleep(_LOOK)
            finally:
                self._write_out(order.ready(_now(), everything=True), file)

    def _is_enough(self, order: CommitOrder) -> bool:
        return self._count is not None and self.made + len(order) >= self._count

    def _opened(self) -> IO[bytes]:
        try:
            return self._path.open("wb")
        except OSError as error:
            raise FairleadError(f"{self._path}: {error.strerror}") from error

    async def _add(self, scenario: Doc, order: CommitOrder) -> None:
        from fairlead.kube.replay.recorder import explains, with_explanation

        (decision,) = scenario["decisions"]
        explanation, sequence = await self._explanation(decision), None
        if explanation is not None and explains(explanation, decision):
            scenario, sequence = with_explanation(scenario, explanation), explanation.get("sequence")
        order.add(scenario, sequence, _now())

    def _write_out(self, scenarios: Sequence[Doc], file: IO[bytes]) -> None:
        """Each line is compressed by itself: however the recording ends, what is there can be read."""
        for scenario in scenarios:
            line = orjson.dumps(scenario) + b"\n"
            file.write(gzip.compress(line) if self._path.suffix == ".gz" else line)
            self.made += 1
        if scenarios:
            file.flush()

    async def _explanation(self, decision: Doc) -> Doc | None:
        """What the scheduler says of a decision, if it is one of ours and answers."""
        from fairlead.console.explanations import ask

        if self._unknown >= _PATIENCE:
            return None
        metadata = decision["pod"]["metadata"]
        try:
            found = await ask(self._asked, metadata["namespace"], metadata["name"])
        except FairleadError:
            self._unknown += 1
            return None
        self._unknown = 0
        return found


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _woken(awake: asyncio.Event, *, at_most: float | None) -> None:
    """Until something happened, or the time is over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(at_most):
            await awake.wait()
    awake.clear()


def _end_on_signals() -> None:
    """End on SIGTERM as on Ctrl-C, with a line on what was recorded."""
    recording = asyncio.current_task()
    assert recording is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, recording.cancel)


def _say(watch: Watch, error: ApiError, delay: float) -> None:
    """Kinds that a cluster does not serve, or does not show us, are none; everything else is worth a word."""
    if not watch.optional:
        click.echo(f"{watch.kind.resource} cannot be read, trying again in {delay:.0f} s: {error}", err=True)
