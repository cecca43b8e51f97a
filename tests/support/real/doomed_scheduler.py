"""A scheduler that is killed as by `kill -9` at the moment when it sends its first bind: `python -m ... KUBECONFIG`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from fairlead.assembly.schedulers import default_scheduler
from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.core.model.flow import Doc, Write
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.worlds import Remote


class FailingApi(KubeApi):
    async def perform(self, write: Write) -> Doc:
        if write.subresource == "binding":
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().perform(write)


async def main(kubeconfig: Path) -> None:
    await LiveRuntime(Remote(FailingApi(load_kubeconfig(kubeconfig))), [default_scheduler()]).run_until_stopped()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
