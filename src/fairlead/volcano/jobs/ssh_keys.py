"""Keys for the job plugin `ssh`: RSA with 2048 bits, as its original makes them."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from fairlead.volcano.records.keys import KeyPair

_BITS, _EXPONENT = 2048, 65537


def make_ssh_keys() -> KeyPair:
    key = rsa.generate_private_key(public_exponent=_EXPONENT, key_size=_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private.decode(), public.decode() + "\n")
