"""Kubernetes' words for an invalid field: `Invalid value: 0: must be greater than 0` and its relatives."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fairlead.config.problems import Path, dotted, nearest_word
from fairlead.core.model.syntax import label_key_complaints


@dataclass(frozen=True, slots=True)
class ConfigFieldError:
    """A path within what was validated, and what is wrong there."""

    path: Path
    body: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{dotted(self.path)}: {self.body}"


def required(path: Path, detail: str = "") -> ConfigFieldError:
    return ConfigFieldError(path, f"Required value: {detail}" if detail else "Required value")


def invalid(path: Path, value: Any, detail: str, hint: str = "") -> ConfigFieldError:
    return ConfigFieldError(path, f"Invalid value: {rendered(value)}: {detail}", hint)


def duplicate(path: Path, value: Any, hint: str = "") -> ConfigFieldError:
    return ConfigFieldError(path, f"Duplicate value: {rendered(value)}", hint)


def forbidden(path: Path, detail: str) -> ConfigFieldError:
    return ConfigFieldError(path, f"Forbidden: {detail}")


def unsupported(path: Path, value: str, supported: Iterable[str]) -> ConfigFieldError:
    known = list(supported)
    nearest = nearest_word(value, known)
    listed = ", ".join(rendered(word) for word in known)
    hint = f'did you mean "{nearest}"?' if nearest else ""
    return ConfigFieldError(path, f"Unsupported value: {rendered(value)}: supported values: {listed}", hint)


def rendered(value: Any) -> str:
    """A value as Go's field errors print it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def qualified_name_complaints(name: str) -> list[str]:
    return [complaint.replace("a valid label key", "a qualified name", 1) for complaint in label_key_complaints(name)]
