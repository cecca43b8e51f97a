"""What a client sees of a refusal by one of Volcano's admission webhooks."""

from __future__ import annotations

from fairlead.errors import BadRequest


class Denied(BadRequest):
    """A bad request without a reason, which names the webhook that would have refused it."""

    reason = ""

    def __init__(self, webhook: str, why: str) -> None:
        self.why = why
        super().__init__(f'admission webhook "{webhook}" denied the request: {why}')
