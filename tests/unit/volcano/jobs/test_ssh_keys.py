"""Keys of Jobs: from a seed the same pairs, without one those of OpenSSL."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

from fairlead.volcano.jobs.ssh_keys import key_maker
from fairlead.volcano.records.keys import KeyPair


def read(pair: KeyPair) -> RSAPrivateKey:
    """The private key, after a look at whether the public one is its other half."""
    key = serialization.load_pem_private_key(pair.private.encode(), None)
    public = serialization.load_ssh_public_key(pair.public.encode())
    assert isinstance(key, RSAPrivateKey)
    assert isinstance(public, RSAPublicKey)
    assert key.public_key().public_numbers() == public.public_numbers()
    return key


def test_a_seed_gives_the_same_pairs_in_the_same_order() -> None:
    once, again = key_maker(7), key_maker(7)
    first, second = once(), once()
    assert (again(), again()) == (first, second)
    assert first != second
    assert first.private.startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert read(first).key_size == read(second).key_size == 2048


def test_without_a_seed_no_pair_comes_again() -> None:
    first, other = key_maker(None)(), key_maker(None)()
    assert first != other
    assert read(first).key_size == 2048
