"""Steering completions while they are sampled: budgets, waiting, stop strings.

The engine asks at every look what to do with a completion. The answer is a function of
its key, its tokens so far and their log-probs alone, so a resumed completion is steered
like an uninterrupted one.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

CERTAIN = math.log(0.99)
"""Log-prob of a token that was hardly a choice."""


@dataclasses.dataclass(frozen=True)
class Steer:
    """What becomes of a completion."""

    keep: int
    """Tokens that stay."""
    force: tuple[int, ...] = ()
    """Tokens to write after them; they are not the policy's and leave the loss."""
    ended: bool = False
    """The completion is over, as if it had closed itself."""
    cut: bool = False
    """The completion is over without an end, as at the limit."""


@dataclasses.dataclass(frozen=True)
class Control:
    """Rules about one completion; all off by default.

    s1's budget forcing (https://arxiv.org/abs/2501.19393) is `least_thinking` with
    `wait`; Qwen3's thinking budget (https://arxiv.org/abs/2505.09388) is `budget` with
    its sentence in `budget_text`.
    """

    close: tuple[int, ...] = ()
    """Token ids of "</think>"."""
    budget: int = 0
    """Thinking tokens after which `budget_text` and `close` are written; 0: none."""
    budget_spread: int = 0
    """The budget of each completion is drawn from [budget, budget + budget_spread]."""
    budget_text: tuple[int, ...] = ()
    least_thinking: int = 0
    """A shorter thought is continued: `wait` is written in place of `close`."""
    wait: tuple[int, ...] = ()
    max_waits: int = 1
    answer_tokens: int = 0
    """A completion is cut so many tokens after its thoughts; 0: any number."""
    certain_tokens: int = 0
    """A completion is cut after so many tokens in a row that each had a probability
    above CERTAIN: it repeats itself (MiniMax-M1: 3,000); 0: never."""
    prefix: tuple[int, ...] = ()
    """Written at the start, as "<think>\\n"."""
    stop_texts: tuple[str, ...] = ()
    """Texts that end a completion, however they are cut into tokens."""
    decode: Callable[[Sequence[int]], str] | None = None
    """Tokens to text, for `stop_texts`."""

    def drawn(self, key: Sequence[int]) -> "Control":
        """The control of one completion: its own budget, a function of its key."""
        if self.budget_spread == 0:
            return self
        bits = np.random.SeedSequence(list(key)).generate_state(1)
        extra = int(bits[0]) % (self.budget_spread + 1)
        return dataclasses.replace(self, budget=self.budget + extra, budget_spread=0)

    def first_look(self, limit: int) -> int:
        """Tokens after which a new completion must be looked at."""
        return min(self.budget or limit, limit)

    def thinking_tokens(self, tokens: Sequence[int]) -> int:
        """Those before the thoughts were closed; all, where they never were."""
        closed = _find(tokens, self.close)
        return len(tokens) if closed < 0 else closed

    def look(
        self,
        tokens: Sequence[int],
        forced: Sequence[bool],
        logprobs: Sequence[float] = (),
    ) -> Steer | None:
        """What to do with a completion of these tokens; None lets it go on.

        Args:
          tokens: so far.
          forced: which of them were written by this control.
          logprobs: of the tokens, for `certain_tokens`.
        """
        stopped = self._stopped(tokens)
        if stopped is not None:
            return Steer(stopped, ended=True)
        closed = _find(tokens, self.close)
        # Where the sentence has begun it is being written: no second start.
        if (
            closed < 0
            and 0 < self.budget <= len(tokens)
            and not any(forced[self.budget : self.budget + 1])
        ):
            text = (*self.budget_text, *self.close)
            return Steer(self.budget, force=text)
        if 0 <= closed < self.least_thinking:
            written = sum(forced[len(self.prefix) : closed])
            if written < self.max_waits * len(self.wait):
                return Steer(closed, force=self.wait)
        last = closed + len(self.close) + self.answer_tokens
        if closed >= 0 and 0 < self.answer_tokens and last < len(tokens):
            return Steer(last, cut=True)
        return self._certain(forced, logprobs)

    def _certain(self, forced, logprobs) -> Steer | None:
        """Cuts where the first run of certain tokens is long enough."""
        if self.certain_tokens == 0:
            return None
        run = 0
        for place, (logprob, is_forced) in enumerate(
            zip(logprobs, forced, strict=True)
        ):
            run = run + 1 if logprob > CERTAIN and not is_forced else 0
            if run == self.certain_tokens:
                return Steer(place + 1, cut=True)
        return None

    def _stopped(self, tokens: Sequence[int]) -> int | None:
        """Tokens up to the first complete stop text, or None."""
        if not self.stop_texts or self.decode is None:
            return None
        if not any(stop in self.decode(tokens) for stop in self.stop_texts):
            return None
        low, high = 1, len(tokens)
        while low < high:  # the shortest beginning that holds a stop text
            middle = (low + high) // 2
            text = self.decode(tokens[:middle])
            if any(stop in text for stop in self.stop_texts):
                high = middle
            else:
                low = middle + 1
        return low


def _find(tokens: Sequence[int], wanted: Sequence[int]) -> int:
    """Where `wanted` begins in `tokens`, or -1."""
    size = len(wanted)
    if size == 0:
        return -1
    for start in range(len(tokens) - size + 1):
        if tuple(tokens[start : start + size]) == tuple(wanted):
            return start
    return -1
