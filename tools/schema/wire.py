"""Writes src/fairlead/cluster/data/wire.json.gz: the numbers and types of the fields in Kubernetes' protobuf messages.

Stock clients send built-in kinds as protobuf. The wire format carries only field numbers, so decoding needs this table.
It is read from the `generated.proto` files of the Go modules k8s.io/api and k8s.io/apimachinery, and from the
`types.go` next to them, which say what fields are inlined in JSON. Usage, with the modules in Go's module cache:

    python tools/schema/wire.py --modules "$(go env GOMODCACHE)/k8s.io" --version v0.36.4 --next v0.37.1

What only the next version has is taken from there.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import orjson

from fairlead.core.model.kinds import served_kinds

META = "k8s.io.apimachinery.pkg.apis.meta.v1"
TARGET = Path(__file__).parents[2] / "src/fairlead/cluster/data/wire.json.gz"
FURTHER_ROOTS = (
    f"{META}.DeleteOptions",
    "k8s.io.api.core.v1.Binding",
    "k8s.io.api.autoscaling.v1.Scale",
    "k8s.io.api.policy.v1.Eviction",
    "k8s.io.api.authorization.v1.SelfSubjectAccessReview",
    "k8s.io.api.authorization.v1.SelfSubjectRulesReview",
    "k8s.io.api.authorization.v1.SubjectAccessReview",
    "k8s.io.api.authorization.v1.LocalSubjectAccessReview",
    "k8s.io.api.authentication.v1.SelfSubjectReview",
    "k8s.io.api.authentication.v1.TokenReview",
    "k8s.io.api.authentication.v1.TokenRequest",
)
SCALARS = frozenset({"string", "bytes", "bool", "int32", "int64", "uint32", "uint64", "double"})
_FIELD = re.compile(r"^\s*(optional|repeated|map<string,\s*)\s*([.\w]+)>?\s+(\w+)\s*=\s*(\d+);")
_INLINE = re.compile(r'json:",inline" protobuf:"bytes,(\d+),')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--next", required=True)
    options = parser.parse_args()
    messages: dict[str, dict[str, list[str]]] = {}
    for module in (f"api@{options.next}", f"api@{options.version}", f"apimachinery@{options.version}"):
        for file in sorted((options.modules / module).rglob("generated.proto")):
            messages |= dict(_messages(file))
    wanted = _reachable(messages)
    TARGET.write_bytes(gzip.compress(orjson.dumps({"messages": wanted}), mtime=0))
    print(f"{len(wanted)} messages, {TARGET.stat().st_size} bytes")


def _messages(file: Path) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Each message of a file: field number to name, type and how many (one, many, map, inline)."""
    text = file.read_text()
    package = re.search(r"^package ([\w.]+);", text, re.M)
    assert package is not None
    inlined = set(_inlined(file.parent))
    for name, body in re.findall(r"^message (\w+) \{\n(.*?)^\}", text, re.M | re.S):
        fields = {}
        for line in body.splitlines():
            if found := _FIELD.match(line):
                label, type_, field, number = found.groups()
                many = {"optional": "one", "repeated": "many"}.get(label, "map")
                if (name, number) in inlined:
                    many = "inline"
                fields[number] = [field, _qualified(type_, package[1]), many]
        yield f"{package[1]}.{name}", fields


def _qualified(type_: str, package: str) -> str:
    if type_ in SCALARS or type_.startswith("."):
        return type_.lstrip(".")
    return type_ if "." in type_ else f"{package}.{type_}"


def _inlined(directory: Path) -> Iterator[tuple[str, str]]:
    for file in directory.glob("*.go"):
        struct = ""
        for line in file.read_text().splitlines():
            if opened := re.match(r"^type (\w+) struct", line):
                struct = opened[1]
            elif struct and (found := _INLINE.search(line)):
                yield struct, found[1]


def _reachable(messages: dict[str, dict[str, list[str]]]) -> dict[str, dict[str, list[str]]]:
    roots = [
        f"k8s.io.api.{kind.group.partition('.')[0] or 'core'}.{kind.version}.{kind.kind}" for kind in served_kinds()
    ]
    waiting = [name for name in (*roots, *FURTHER_ROOTS) if name in messages]
    result: dict[str, dict[str, list[str]]] = {}
    while waiting:
        name = waiting.pop()
        if name not in result:
            result[name] = messages[name]
            waiting += [type_ for _, type_, _ in messages[name].values() if type_ in messages]
    return dict(sorted(result.items()))


if __name__ == "__main__":
    main()
