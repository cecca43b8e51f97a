"""Keys for the job plugin `ssh`: RSA with 2048 bits, as its original makes them.

OpenSSL draws keys from the operating system and takes no other source of randomness. For a cluster with a seed, whose
objects are the same each time, the primes are therefore searched here; OpenSSL then checks that they are primes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from math import gcd, prod
from random import Random
from typing import TYPE_CHECKING

from fairlead.volcano.records.keys import KeyPair

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

_BITS, _EXPONENT = 2048, 65537
_SMALL = 20_000
"""A candidate that a prime below this divides is dropped; a test of the others takes milliseconds."""


def key_maker(seed: int | None) -> Callable[[], KeyPair]:
    """Makes a new pair with each call: from the operating system's randomness, or the same ones for the same seed."""
    return make_ssh_keys if seed is None else partial(seeded_ssh_keys, Random(f"{seed}/ssh keys"))


def make_ssh_keys() -> KeyPair:
    """A pair from the operating system's randomness."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    return _written(rsa.generate_private_key(public_exponent=_EXPONENT, key_size=_BITS))


def seeded_ssh_keys(rng: Random) -> KeyPair:
    """A pair from numbers of `rng`, for clusters that nobody can reach."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    p, q = _prime(rng), _prime(rng)
    private = pow(_EXPONENT, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(_EXPONENT, p * q)
    numbers = rsa.RSAPrivateNumbers(
        p, q, private, rsa.rsa_crt_dmp1(private, p), rsa.rsa_crt_dmq1(private, q), rsa.rsa_crt_iqmp(p, q), public
    )
    return _written(numbers.private_key())


def _written(key: RSAPrivateKey) -> KeyPair:
    from cryptography.hazmat.primitives import serialization

    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private.decode(), public.decode() + "\n")


def _prime(rng: Random) -> int:
    """A prime of half the bits, of which the two highest are set, so that the product of two has all bits."""
    bits = _BITS // 2
    while True:
        candidate = rng.getrandbits(bits) | 3 << bits - 2 | 1
        if gcd(candidate, _product_of_small_primes()) > 1 or (candidate - 1) % _EXPONENT == 0:
            continue
        if pow(2, candidate - 1, candidate) == 1:
            return candidate


@cache
def _product_of_small_primes() -> int:
    return prod(_primes_below(_SMALL)[1:])


def _primes_below(limit: int) -> Sequence[int]:
    prime = bytearray([1]) * limit
    for number in range(2, int(limit**0.5) + 1):
        if prime[number]:
            prime[number * number :: number] = bytes(len(range(number * number, limit, number)))
    return [number for number in range(2, limit) if prime[number]]
