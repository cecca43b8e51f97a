"""FNV-1a hashes of 32 and 64 bits, and the letters in which Kubernetes writes them into names.

Names made from it are the same in every process, so that a restarted controller finds what it made before.
"""

from __future__ import annotations

_OFFSET, _PRIME = 2166136261, 16777619
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""Letters and digits that form no words and are not mistaken for each other."""


def fnv32a(text: str) -> int:
    digest = _OFFSET
    for byte in text.encode():
        digest = (digest ^ byte) * _PRIME & 0xFFFFFFFF
    return digest


def safe_hash(text: str) -> str:
    """The hash of a text, spelled so that it can be part of an object's name."""
    return "".join(_SAFE[ord(digit) % len(_SAFE)] for digit in str(fnv32a(text)))


def fnv64a(text: str) -> int:
    """The 64-bit form."""
    digest = 14695981039346656037
    for byte in text.encode():
        digest = (digest ^ byte) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
    return digest
