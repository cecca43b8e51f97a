"""Asks a real API server what it makes of the documents in cases.py, and keeps the answers for the unit tests.

The server must be a fresh one with GenericWorkload on and without the ServiceAccount plugin. The answers become
tests/unit/cluster/data/recorded.json: the defaulted document, or the Status with message and causes.

    tools/schema/record_cases.py --server https://127.0.0.1:6443 --token TOKEN

With `--groups v1alpha2` or `--groups v1beta1` the documents are those of group_cases.py, and the server must have that
version and all its gang features on (v1alpha2: Kubernetes 1.36, v1beta1: 1.37). They become groups-VERSION.json.
"""

from __future__ import annotations

import argparse
import copy
import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import cases
import group_cases

from fairlead.core.model.kinds import Registry

TARGET = Path(__file__).parents[2] / "tests/unit/cluster/data"
VOLATILE = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "selfLink")


class Server:
    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token
        self.context = ssl._create_unverified_context()

    def call(self, method: str, path: str, body: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self.context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)


def address(doc: dict[str, Any]) -> str:
    kind = Registry().by_kind(doc["apiVersion"], doc["kind"])
    assert kind is not None, doc
    return kind.path("default")


def tidy(answer: dict[str, Any]) -> dict[str, Any]:
    for key in VOLATILE:
        answer.get("metadata", {}).pop(key, None)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--groups", metavar="VERSION", choices=(group_cases.ALPHA, group_cases.BETA))
    options = parser.parse_args()
    server, version = Server(options.server, options.token), options.groups
    surroundings = group_cases.surroundings(version) if version else cases.SURROUNDINGS
    for doc in surroundings:
        server.call("POST", address(doc), doc)
    created = [
        {"doc": doc, "answer": tidy(server.call("POST", address(doc) + "?dryRun=All&fieldValidation=Strict", doc))}
        for doc in (group_cases.created(version) if version else cases.created())
    ]
    updated = []
    for old, steps in group_cases.updated(version) if version else cases.updated():
        base = server.call("POST", address(old), old)
        assert base["kind"] != "Status", base
        for subresource, change in steps:
            new = copy.deepcopy(base)
            change(new)
            path = f"{address(old)}/{old['metadata']['name']}{'/' + subresource if subresource else ''}?dryRun=All"
            answer = tidy(server.call("PUT", path, new))
            before = copy.deepcopy(base)
            for doc in (before, new):
                doc["metadata"].pop("managedFields", None)
            pair = {"old": before, "new": new, "subresource": subresource}
            updated.append({**pair, "answer": answer})
    TARGET.mkdir(parents=True, exist_ok=True)
    recorded = {"surroundings": surroundings, "created": created, "updated": updated}
    target = TARGET / (f"groups-{version}.json" if version else "recorded.json")
    target.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    print(len(created), "created,", len(updated), "updated")


if __name__ == "__main__":
    main()
