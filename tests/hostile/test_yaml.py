"""YAML that is deep, endless or slow to read: refused with the place, and the process lives."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.main import cli
from fairlead.cluster.server.pki import Credentials
from fairlead.config.yaml_text import DEEPEST, load_all, load_one
from tests.support.served import Client, run

MAPS = "/api/v1/namespaces/default/configmaps"
DEEP = {
    "brackets": "[" * 30_000 + "]" * 30_000,
    "braces": "{a: " * 30_000 + "}" * 30_000,
    "dashes": "- " * 40_000 + "x",
    "unclosed": "[" * 200_000,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_a_deep_body_is_refused_and_the_server_lives(text: str) -> None:
    async def story(client: Client) -> None:
        status, answer = await client.ask("POST", MAPS, text.encode(), Content_Type="application/yaml")
        assert (status, answer["reason"]) == (400, "BadRequest")
        assert answer["message"].endswith("error converting YAML to JSON: yaml: line 1: exceeded max depth")
        apply = f"{MAPS}/m?fieldManager=me"
        status, answer = await client.ask("PATCH", apply, text.encode(), Content_Type="application/apply-patch+yaml")
        assert (status, answer["reason"]) == (400, "BadRequest")
        assert await client.ask("GET", "/healthz") == (200, b"ok")

    run(Credentials.generate(now=time.time()), story)


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_a_deep_file_is_an_error_with_its_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.yaml"
    file.write_text(text)
    result = CliRunner().invoke(cli, ["config", "check", str(file)])
    assert result.exit_code == 2
    assert f"{file}:1" in result.output
    assert "nested too deeply" in result.output


def test_what_is_as_deep_as_allowed_is_read() -> None:
    value = load_one("[" * DEEPEST + "]" * DEEPEST)
    for _ in range(DEEPEST - 1):
        (value,) = value
    assert value == []


def test_colons_between_digits_are_text() -> None:
    assert load_one("a: 1:30") == {"a": "1:30"}
    assert load_one("a: " + ":".join("1" * 100_000)) == {"a": ":".join("1" * 100_000)}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("0o17", 15), ("017", 15), ("0b101", 5), ("0xff", 255), ("1_000", 1000), ("-12", -12), ("+3", 3),
        ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), ("2024-01-02", "2024-01-02"), ("yes", True), ("off", False),
        ("0x_", "0x_"), ("1" * 5_000, "1" * 5_000), ("1.2.3", "1.2.3"), ("~", None), ("-.inf", float("-inf")),
        ("08", 8.0), ("1e400", float("inf")),
    ],
)  # fmt: skip
def test_plain_words_are_what_kubernetes_takes_them_for(word: str, value: object) -> None:
    assert load_one(f"a: {word}") == {"a": value}
    assert load_one(f"a: '{word}'") == {"a": word}


def test_documents_are_read_one_by_one() -> None:
    assert load_all("a: 1\n---\n---\nb: 2\n") == [{"a": 1}, None, {"b": 2}]
