"""A key pair for logging in by ssh, as a record: the core never makes one, because it has no randomness of its own."""

from __future__ import annotations

from typing import NamedTuple


class KeyPair(NamedTuple):
    """An RSA key in PEM, and its public half as authorized_keys spells it."""

    private: str
    public: str


def no_keys() -> KeyPair:
    """For clusters that nobody logs in to."""
    return KeyPair("", "")
