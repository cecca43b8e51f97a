"""Ports for processes that tests start: what one was given, no other is, in whatever process it asks."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.real.control_plane import free_port

ASK = """
import secrets
from tests.support.real.control_plane import free_port
draws, real = [{draw}], secrets.randbelow
secrets.randbelow = lambda most: draws.pop() if draws else real(most)
print(free_port(), draws)
"""


def test_a_port_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given = free_port()
    draws, real = [given - 10_000], secrets.randbelow
    monkeypatch.setattr(secrets, "randbelow", lambda most: draws.pop() if draws else real(most))
    assert free_port() != given
    assert not draws


def test_a_port_is_not_given_to_another_process() -> None:
    given = free_port()
    asked = [sys.executable, "-c", ASK.format(draw=given - 10_000)]
    done = subprocess.run(asked, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    other, left = done.stdout.split()
    assert (int(other) != given, left) == (True, "[]")
