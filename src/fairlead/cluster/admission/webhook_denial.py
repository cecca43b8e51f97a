"""Denied: what a client sees of a refusal by an admission webhook of a family, which the server itself makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.errors import BadRequest

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems


class Denied(BadRequest):
    """A bad request without a reason, which names the webhook that would have refused it."""

    reason = ""

    def __init__(self, webhook: str, why: str) -> None:
        self.why = why
        super().__init__(f'admission webhook "{webhook}" denied the request: {why}')


def all_of(problems: ValidationProblems) -> str:
    """All problems in one text, as a webhook lists them."""
    texts = list(dict.fromkeys(f"{path}: {message}" for _, path, message in problems.found))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
