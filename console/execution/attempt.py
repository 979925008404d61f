"""What one attempt to begin an operation has done before it was refused: no word may claim that nothing was sent."""

from __future__ import annotations

from dataclasses import dataclass, field

from console.execution.policy import Refused
from console.readings.acting_types import Operation


@dataclass(slots=True)
class Attempt:
    """Filled in as it goes."""

    verb: str
    lane: str
    new: bool = False
    """The lease was not ours before."""
    lease: str = ""
    """What became of the lease, in safe words; '' where it was ours before."""
    what: str = ""
    """What had to be ended, in safe words."""
    ended: str = ""
    """How far that went; '' where nothing was done to it."""
    given_back: bool = field(default=False)
    """The lease, after it was refused."""

    def held(self, came_from: str, *, new: bool, other: bool) -> None:
        """`new`: the lease was not ours before; `other`: it was another operator's."""
        self.new = new
        if other:
            self.lease = f"{self.lane} was taken over from {came_from}"
        elif new:
            self.lease = "a lease was taken"

    def ending(self, words: str, found: Operation | None) -> None:
        """`found`: what the picture shows as the newest operation."""
        seen = found is not None and found.id in words
        self.what = f"{found.verb} by {found.operator or 'somebody'}" if seen and found is not None else words

    def fenced(self) -> None:
        """What has to be ended is fenced off by a newer epoch."""
        self.ended = f"{self.what} was fenced off"

    def told(self, *, over: bool) -> None:
        """It was told to end; `over`: all of it was seen to."""
        if over:
            self.ended = f"{self.what} was ended"
        else:
            self.ended = f"{self.ended} and told to end" if self.ended else f"{self.what} was told to end"

    def account_for(self, refused: Refused) -> None:
        """Put into the refusal what did happen."""
        lease = f"{self.lease} and given back" if self.lease and self.given_back else self.lease
        did = [words for words in (lease, self.ended) if words]
        if did:
            refused.did, refused.half = f"{'; '.join(did)}; {self.verb} did not begin", bool(self.ended)
