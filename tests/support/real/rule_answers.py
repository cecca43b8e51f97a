"""What a real API server says of rules of CustomResourceDefinitions and of values under them.

Each rule is shown alone in a definition that is not kept. Those that are accepted then stand together, one property
each, in definitions that are, so that a few definitions serve hundreds of rules; answers name the property `p` as if it
were alone.
"""

from __future__ import annotations

import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Doc = dict[str, Any]
Cause = list[str]
RULES = "x-kubernetes-validations"
GROUP = "rules.example.com"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_TOGETHER = 25


def definition(schema: Doc, plural: str = "tests") -> Doc:
    """A definition with this schema for its objects."""
    names = {"plural": plural, "kind": plural.capitalize()}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }


def schema_of(row: Doc, name: str = "p") -> Doc:
    """The whole schema in which a row's rule stands."""
    ruled = {**row["schema"], RULES: [*row["schema"].get(RULES, ()), row["rule"]]}
    return ruled if row.get("root") else {"type": "object", "properties": {name: ruled}}


def object_of(row: Doc, value: Any, name: str = "p", plural: str = "tests") -> Doc:
    doc = {"apiVersion": f"{GROUP}/v1", "kind": plural.capitalize(), "metadata": {"name": "a"}}
    return {**doc, **(value if row.get("root") else {name: value})}


class RealServer:
    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._context = ssl._create_unverified_context()
        self._made = 0

    def answers(self, rows: Iterable[Doc]) -> Iterator[Doc]:
        """The rows (`schema`, `rule`, `values`: pairs of a value and the one before, `root`) with `refused`, the
        causes for which the definition is refused, or `verdicts`, the causes for each value."""
        accepted: list[Doc] = []
        for row in rows:
            refused = self._causes("POST", _DEFINITIONS + "?dryRun=All", definition(schema_of(row)))
            if refused:
                yield {**row, "refused": refused}
            else:
                accepted.append(row)
        for row in (one for one in accepted if one.get("root")):
            yield from self._together([row])
        others = [one for one in accepted if not one.get("root")]
        for at in range(0, len(others), _TOGETHER):
            yield from self._together(others[at : at + _TOGETHER])

    def _together(self, rows: Sequence[Doc]) -> Iterator[Doc]:
        self._made += 1
        plural = f"tests{self._made}s"
        named = {f"p{at}x": row for at, row in enumerate(rows)}
        if rows[0].get("root"):
            schema = schema_of(rows[0])
        else:
            properties = {name: schema_of(row, name)["properties"][name] for name, row in named.items()}
            schema = {"type": "object", "properties": properties}
        refused = self._causes("POST", _DEFINITIONS, definition(schema, plural))
        if refused and len(rows) > 1:  # they cost too much together
            for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
                yield from self._together(half)
            return
        assert not refused, refused
        self._wait(plural)
        path = f"/apis/{GROUP}/v1/{plural}"
        for name, row in named.items():
            verdicts = []
            for value, old in row["values"]:
                doc = object_of(row, value, name, plural)
                if old is None:
                    causes = self._causes("POST", path + "?dryRun=All", doc)
                else:
                    causes = self._causes("POST", path, object_of(row, old, name, plural))
                    assert not causes, (row, causes)
                    now = self._call("GET", f"{path}/a", None)[1]["metadata"]["resourceVersion"]
                    doc["metadata"]["resourceVersion"] = now
                    causes = self._causes("PUT", f"{path}/a?dryRun=All", doc)
                    self._call("DELETE", f"{path}/a", None)
                verdicts.append(tidied(causes, name))
            yield {**row, "verdicts": verdicts}
        self._call("DELETE", f"{_DEFINITIONS}/{plural}.{GROUP}", None)

    def _wait(self, plural: str) -> None:
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            # A resource is served a moment after its definition says so.
            probe = {"apiVersion": f"{GROUP}/v1", "kind": plural.capitalize(), "metadata": {"name": "probe"}}
            if self._call("POST", f"/apis/{GROUP}/v1/{plural}?dryRun=All", probe)[0] not in (404, 405):
                return
            time.sleep(0.1)
        raise TimeoutError(plural)

    def _causes(self, method: str, path: str, body: Doc) -> list[Cause]:
        code, answer = self._call(method, path, body)
        if code < 300:
            return []
        causes = (answer.get("details") or {}).get("causes")
        assert causes, (code, answer)
        return tidied([[one.get("reason", ""), one["field"], one["message"]] for one in causes])

    def _call(self, method: str, path: str, body: Doc | None) -> tuple[int, Doc]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, json.loads(text) if text.startswith(b"{") else {}  # a path that is not served


def tidied(causes: Iterable[Sequence[str]], name: str = "p") -> list[Cause]:
    """Causes in an order of their own, without numbers that are others each time."""
    found = [[re.sub(r"selfType\d+", "selfType", re.sub(rf"\b{name}\b", "p", part)) for part in one] for one in causes]
    return sorted(found)


def packed(rows: Iterable[Doc]) -> Iterator[str]:
    """Lines that hold answers: the first has every schema and value once, the others refer to them by number."""
    schemas: list[str] = []
    values: list[str] = []

    def number(table: list[str], item: Any) -> int:
        text = json.dumps(item, sort_keys=True)
        if text not in table:
            table.append(text)
        return table.index(text)

    lines = []
    for row in rows:
        pairs = [[number(values, new), None if old is None else number(values, old)] for new, old in row["values"]]
        known = {"schema": number(schemas, row["schema"]), "values": pairs}
        lines.append(json.dumps({**row, **known}, ensure_ascii=False))
    yield json.dumps({"schemas": list(map(json.loads, schemas)), "values": list(map(json.loads, values))})
    yield from lines


def unpacked(lines: Iterable[str]) -> list[Doc]:
    first, *others = map(json.loads, lines)
    values = first["values"]
    return [
        {
            **row,
            "schema": first["schemas"][row["schema"]],
            "values": [[values[new], None if old is None else values[old]] for new, old in row["values"]],
        }
        for row in others
    ]
