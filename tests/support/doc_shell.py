"""PageShell: one bash in which the commands of a page are run, in order, as a reader would type them.

They find examples/, as in a clone. There is no terminal, and what is printed has 80 columns. Commands that go on until
they are interrupted (`fairlead up`, `scheduler`, `controllers` and `record`) run beside the others once they are ready,
as in a second terminal. A second one of a kind ends the first, and `fairlead up` ends them all. At the end what is left
is interrupted as by Ctrl-C, and must end well.
"""

from __future__ import annotations

import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from tests.support.doc_blocks import COMMANDS, REPOSITORY, Block, blocks_of, matches

PATIENCE = 90.0
COLUMNS = 80
_LASTING = re.compile(r"(?:\w+=\S+ )*fairlead (up|scheduler|controllers|record)\b")
_END = "end of a command:"


class PageShell:
    """`programs` are directories that are searched before the usual ones, for a kubectl."""

    def __init__(self, directory: Path, *programs: str) -> None:
        self.directory = directory
        path = os.pathsep.join([str(Path(sys.executable).parent), *programs, os.environ["PATH"]])
        home = directory / "home"
        home.mkdir(parents=True)
        (directory / "examples").symlink_to(REPOSITORY / "examples")
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "FAIRLEAD_REAL") if name in os.environ}
        environment = {
            **kept, "PATH": path, "HOME": str(home), "COLUMNS": str(COLUMNS), "TERM": "dumb",
            "KUBECACHEDIR": str(home / "kubecache"), "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "error",
        }  # fmt: skip
        self._bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], cwd=directory, env=environment, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._lasting: list[_Lasting] = []
        self.said: list[tuple[str, str]] = []
        """Every command with what it printed."""

    def __enter__(self) -> PageShell:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.end_all()
        finally:
            for lasting in self._lasting:
                _signal(lasting.process, signal.SIGKILL)
            self._bash.kill()
            self._bash.communicate()

    def run(self, block: Block) -> None:
        """Write the block's file, if it is one, and run its commands."""
        if block.file:
            (self.directory / block.file).write_text(block.text + "\n", encoding="utf-8")
        if block.language not in COMMANDS:
            return
        for command in block.setup:
            code, printed = self.command(command)
            assert code == 0, f"{block.title}: setup: {command}: exit code {code}\n{printed}"
        commands = block.commands()
        for number, (command, shown) in enumerate(commands, start=1):
            code, printed = self.command(command)
            wanted = block.code if number == len(commands) else 0
            assert code == wanted, f"{block.title}: {command}: exit code {code}, not {wanted}\n{printed}"
            if shown is not None:
                assert matches(shown, printed), f"{block.title}: {command} printed\n{printed}\nnot\n{shown}"

    def command(self, command: str) -> tuple[int, str]:
        """The exit code of a command and what it printed, on both outputs."""
        lasting = _LASTING.match(command)
        if lasting is not None and "--help" not in command:
            code, printed = self._start(lasting[1], command)
        else:
            code, printed = self._command(f"{{ {command}\n}} </dev/null")
        self.said.append((command, printed))
        return code, printed

    def _command(self, text: str) -> tuple[int, str]:
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f'{text}\necho "{_END} $?"\n')
        self._bash.stdin.flush()
        printed = ""
        timer = threading.Timer(PATIENCE, self._bash.kill)
        timer.start()
        try:
            for line in self._bash.stdout:
                before, found, code = line.partition(_END)
                printed += before
                if found:
                    return int(code), printed
        finally:
            timer.cancel()
        raise AssertionError(f"the shell ended, or {PATIENCE:g} s went by, at {text}\n{printed}")

    def _start(self, what: str, command: str) -> tuple[int, str]:
        for lasting in reversed(self._lasting[:]):
            if what in ("up", lasting.what):
                self._end(lasting)
        log = self.directory / "home" / f"{what}-{len(self.said)}.log"
        log.touch()
        _, number = self._command(f"{command} >{log} 2>&1 </dev/null & echo $!")
        lasting = _Lasting(what, command, int(number), log)
        self._lasting.append(lasting)
        deadline = time.monotonic() + PATIENCE
        while not self._is_ready(lasting):
            if _has_ended(lasting.process):
                self._lasting.remove(lasting)
                code, _ = self._command(f"wait {lasting.process}")
                return code, log.read_text()
            assert time.monotonic() < deadline, f"{command} is not ready:\n{log.read_text()}"
            time.sleep(0.05)
        return 0, log.read_text()

    def _is_ready(self, lasting: _Lasting) -> bool:
        said = lasting.log.read_text()
        if lasting.what == "up":
            return bool(re.search(r"^ready ", said, re.MULTILINE))
        if lasting.what == "controllers":
            return "running " in said
        if lasting.what == "record":
            return (self.directory / lasting.command.split()[2]).exists()
        port = re.search(r"--secure-port[ =](\d+)", lasting.command)
        try:
            url = f"https://127.0.0.1:{port[1] if port else 10259}/readyz"  # health is open to everybody
            with urlopen(url, timeout=5, context=ssl._create_unverified_context()) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def end_all(self) -> None:
        """Ctrl-C for everything that still runs, the latest first."""
        for lasting in reversed(self._lasting[:]):
            self._end(lasting)

    def _end(self, lasting: _Lasting) -> None:
        self._lasting.remove(lasting)
        _signal(lasting.process, signal.SIGINT)
        code, _ = self._command(f"wait {lasting.process}")
        said = lasting.log.read_text()
        assert code == 0, f"{lasting.command} ended with {code}\n{said}"
        if lasting.what == "up":
            kept = (self.directory / "fairlead.kubeconfig").exists()
            assert kept == ("--data" in lasting.command), "the kubeconfig goes at the end, unless data is kept"
        self.said.append((lasting.command, said))

    def check(self) -> None:
        """What holds of everything that was printed: no traceback, nothing for a terminal, and whole tables."""
        self.end_all()
        for command, printed in self.said:
            assert "Traceback" not in printed, f"{command}\n{printed}"
            assert "\x1b" not in printed, f"{command} takes a pipe for a terminal\n{printed}"
            cut = [line for line in printed.splitlines() if line[:1] in "┏┃┡│└├" and "…" in line]
            assert not cut, f"{command} cuts the cells of its tables in a pipe\n{printed}"
        assert not (self.directory / "home" / ".kube" / "config").exists()


@dataclass(frozen=True, slots=True)
class _Lasting:
    """A command that runs beside the others."""

    what: str
    command: str
    process: int
    log: Path


def needs_kubectl(page: Path) -> bool:
    """Whether a page's commands, or what they need, use kubectl."""
    return any(
        re.search(r"\bkubectl ", command)
        for block in blocks_of(page)
        if block.runs and block.language in COMMANDS
        for command in (*block.setup, *(command for command, _ in block.commands()))
    )


def _signal(process: int, number: signal.Signals) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return


def _has_ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
