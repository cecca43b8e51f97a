"""Credentials in a data directory that are empty, cut off or of another machine: one clear line, nobody is let in."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fairlead.cluster.server.pki import YEARS, Credentials
from fairlead.core.model.kinds import SERVICE_ACCOUNT
from fairlead.errors import JournalError
from tests.support.served import Client, run

NOW = time.time()
LEFT = "remove ca.crt, server.crt, server.key, token there to have new ones made"
SECRETS = "/api/v1/secrets"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    Credentials.kept_in(tmp_path, now=NOW)
    return tmp_path


@pytest.mark.parametrize("content", [b"", b"\n", b"short", b"\xff" * 40], ids=["empty", "newline", "short", "bytes"])
def test_a_token_that_anybody_could_guess_is_refused(kept: Path, content: bytes) -> None:
    (kept / "token").write_bytes(content)
    with pytest.raises(JournalError, match="holds no token of at least 32 characters") as refused:
        Credentials.kept_in(kept, now=NOW)
    assert LEFT in str(refused.value)


@pytest.mark.parametrize("file", ["ca.crt", "server.crt", "server.key"])
@pytest.mark.parametrize("keep", [0, 40])
def test_a_file_that_is_cut_off_is_named(kept: Path, file: str, keep: int) -> None:
    path = kept / file
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(JournalError, match="holds no") as refused:
        Credentials.kept_in(kept, now=NOW)
    assert str(refused.value).startswith(str(path))


def test_a_key_of_another_certificate_is_refused(kept: Path) -> None:
    (kept / "server.key").write_bytes(Credentials.generate(now=NOW).key)
    with pytest.raises(JournalError, match=r"does not belong to server\.crt"):
        Credentials.kept_in(kept, now=NOW)


@pytest.mark.parametrize("years", [-1, YEARS + 1])
def test_a_clock_outside_of_the_certificates_time_is_said(kept: Path, years: int) -> None:
    with pytest.raises(JournalError, match=r"is valid from .* and the machine's clock says"):
        Credentials.kept_in(kept, now=NOW + years * 365 * 86400)


def test_another_address_than_the_certificates_is_said(kept: Path) -> None:
    with pytest.raises(JournalError, match=r"was made for other addresses than 127\.0\.0\.2"):
        Credentials.kept_in(kept, now=NOW, hosts=("127.0.0.2",))


def test_a_service_accounts_token_is_for_its_audience_and_its_account() -> None:
    async def story(client: Client) -> None:
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await client.ask("POST", accounts, {"metadata": {"name": "robot"}})

        async def token(**spec: object) -> str:
            _, answer = await client.ask("POST", f"{accounts}/robot/token", {"spec": spec})
            return str(answer["status"]["token"])

        async def status(token: str, scheme: str = "Bearer") -> int:
            return (await client.ask("GET", SECRETS, Authorization=f"{scheme} {token}"))[0]

        foreign, own = await token(audiences=["vault"]), await token()
        assert [await status(foreign), await status(own), await status(own, "bearer")] == [401, 200, 200]
        await client.ask("DELETE", f"{accounts}/robot")
        assert client.store.get(SERVICE_ACCOUNT, "default", "robot") is None
        assert await status(own) == 401
        await client.ask("POST", accounts, {"metadata": {"name": "robot"}})
        assert await status(own) == 401
        review = "/apis/authentication.k8s.io/v1/tokenreviews"
        _, answer = await client.ask("POST", review, {"spec": {"token": own}})
        assert answer["status"].get("authenticated") is None
        wrong = await client.ask("POST", review, {"spec": {"token": own, "audiences": 5}})
        assert wrong[0] == 400

    run(Credentials.generate(now=NOW), story)


def test_an_empty_bearer_token_opens_nothing() -> None:
    async def story(client: Client) -> None:
        for header in ("Bearer ", "Bearer", "Bearer  ", "bearer "):
            assert (await client.ask("GET", SECRETS, Authorization=header))[0] == 401

    run(Credentials.generate(now=NOW), story)
