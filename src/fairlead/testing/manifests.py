"""read_manifests: the objects of a file, or of all YAML and JSON files of a directory, as `kubectl apply -f` has them.

A file may hold several documents, and a document may be a List. Files of a directory are read in the order of their
names. What cannot be used is a ConfigError that names the file and the line or the document.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.config.yaml_text import read_documents
from fairlead.errors import ConfigError

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_ENDINGS = (".yaml", ".yml", ".json")


def read_manifests(path: str | Path) -> list[Doc]:
    """All objects of a file or directory."""
    path = Path(path)
    if path.is_dir():
        files = sorted(one for one in path.iterdir() if one.suffix in _ENDINGS)
        if not files:
            raise ConfigError("holds no manifests", file=str(path), hint=f"files that end in {', '.join(_ENDINGS)}")
    else:
        files = [path]
    return [doc for file in files for doc in _read(file)]


def _read(file: Path) -> Iterator[Doc]:
    for number, document in enumerate(read_documents(file), start=1):
        if document is not None:
            yield from _objects(document, file, f"document {number}")


def _objects(document: Any, file: Path, where: str) -> Iterator[Doc]:
    if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
        raise ConfigError("is no Kubernetes object", file=str(file), path=where, hint="it needs apiVersion and kind")
    if isinstance(items := document.get("items"), list) and str(document["kind"]).endswith("List"):
        for number, item in enumerate(items):
            yield from _objects(item, file, f"{where}: items[{number}]")
    elif not isinstance(document.get("metadata"), dict):
        raise ConfigError("has no metadata", file=str(file), path=where, hint="for example metadata: {name: web}")
    else:
        yield document
