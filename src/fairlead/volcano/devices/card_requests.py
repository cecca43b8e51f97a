"""What the containers of a pod want of cards, read from their limits by the names that a configuration gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod


@dataclass(frozen=True, slots=True)
class CardRequest:
    """`number` cards, of each `memory`, or a `share` of its memory in percent where that is requested instead."""

    number: int
    memory: int
    share: int | None
    cores: int

    def memory_of(self, card: int) -> int:
        """What it takes of a card that has so much."""
        return self.memory if self.share is None else card * self.share // 100


def card_requests(pod: Pod, *, count: str, memory: str, percentage: str = "", cores: str = "") -> list[CardRequest]:
    """One for each container that names cards or their memory; who names no memory wants all of it."""
    requests = []
    for container in pod.shape.containers:
        number = container.limit(count)
        if container.init or (number is None and container.limit(memory) is None):
            continue
        size = container.limit_or_request(memory)
        share = container.limit_or_request(percentage) if percentage else 0
        if not share:
            share = 0 if size else 100
        requests.append(
            CardRequest(1 if number is None else number, size, share or None, container.limit_or_request(cores))
        )
    return requests
