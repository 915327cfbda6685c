"""Tokens after the answer was there, and thoughts given up too soon.

A chain of thought is a list of parts with a length each: solutions of an overthinking
model, thoughts of an underthinking one. Whether a part has the right answer is for a
verifier to say; here stand the measures, and the split by words of switching.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

SWITCHES = ("alternatively", "another approach", "another way", "let me try", "instead")
"""Words that a thought begins with; at the start of a sentence."""


class Chain(NamedTuple):
    """One completion, taken apart."""

    tokens: Sequence[int]
    """Length of each part."""
    right: Sequence[bool]
    """Whether the part has come to the right answer."""
    correct: bool
    """The verdict on the whole."""


def split_thoughts(text: str, switches: Sequence[str] = SWITCHES) -> list[str]:
    """The thoughts of a text, in order; joined they are the text.

    Args:
      text: a chain of thought.
      switches: lower case; case does not count.

    Example:
      >>> split_thoughts("Add them. Alternatively, count. Another way: guess.")
      ['Add them. ', 'Alternatively, count. ', 'Another way: guess.']
    """
    words = "|".join(map(re.escape, switches))
    starts = re.finditer(rf"(?:^|(?<=[.!?\n])\s*)(?={words})", text, re.IGNORECASE)
    places = sorted({match.end() for match in starts} | {0})
    ends = [*places[1:], len(text)]
    return [text[a:b] for a, b in zip(places, ends, strict=True) if text[a:b]]


def outcome_efficiency(chains: Sequence[Chain]) -> float:
    r"""How much of the length served the answer.

        xi_O = mean over chains of  1{correct} (tokens up to the first right part) / T

    Args:
      chains: their parts are solutions.

    Returns:
      0..1; a wrong chain counts 0.

    Raises:
      ValueError: no chain, or a correct one without a right part.

    References:
      Do NOT Think That Much for 2+3=?, sec. 2.3. https://arxiv.org/abs/2412.21187

    Example:
      >>> # "2 + 3", answered after 39 of 901 tokens
      >>> round(outcome_efficiency([Chain([39, 862], [True, True], True)]), 4)
      0.0433
    """
    _check(chains)
    return _mean(
        [_until_right(c) / sum(c.tokens) if c.correct else 0.0 for c in chains]
    )


def process_efficiency(
    chains: Sequence[Chain], kinds: Sequence[Sequence[int]]
) -> float:
    r"""How much of the length was new: xi_P = mean of (tokens of distinct parts) / T.

    Args:
      chains: their parts are solutions.
      kinds: of each chain, a number per part; equal ones reason the same way, and only
        the first of them is new.

    Returns:
      0..1.

    Raises:
      ValueError: no chain, or not one kind per part.

    References:
      as `outcome_efficiency`, sec. 2.4.

    Example:
      >>> chain = Chain([40, 40, 20], [True, True, True], True)
      >>> process_efficiency([chain], [[0, 0, 1]])
      0.6
    """
    _check(chains)
    shares = []
    for chain, names in zip(chains, kinds, strict=True):
        if len(names) != len(chain.tokens):
            raise ValueError(
                f"process_efficiency: {len(chain.tokens)} parts with {len(names)} kinds"
            )
        new = [names.index(name) == place for place, name in enumerate(names)]
        kept = sum(t for t, is_new in zip(chain.tokens, new, strict=True) if is_new)
        shares.append(kept / sum(chain.tokens))
    return _mean(shares)


def underthinking(chains: Sequence[Chain]) -> float:
    r"""How much was thought after a right thought had been given up.

        xi_UT = mean over wrong chains of  1 - (tokens up to the first right part) / T

    A chain without a right thought has thought as far as it could and counts 0.

    Args:
      chains: their parts are thoughts; correct ones are left out.

    Returns:
      0..1; 0 where no chain is wrong.

    Raises:
      ValueError: no chain.

    References:
      Thoughts Are All Over the Place, sec. 3. https://arxiv.org/abs/2501.18585

    Example:
      >>> underthinking([Chain([100, 300], [True, False], False)])
      0.75
    """
    _check(chains)
    wrong = [chain for chain in chains if not chain.correct]
    return _mean(
        [1 - _until_right(c) / sum(c.tokens) if any(c.right) else 0.0 for c in wrong]
    )


def _until_right(chain: Chain) -> int:
    return sum(chain.tokens[: list(chain.right).index(True) + 1])


def _check(chains: Sequence[Chain]) -> None:
    if not chains:
        raise ValueError("overthinking: needs at least one chain")
    for place, chain in enumerate(chains):
        if len(chain.tokens) != len(chain.right) or sum(chain.tokens) <= 0:
            raise ValueError(
                f"overthinking: chain {place} needs a length and a verdict per part, "
                f"got {len(chain.tokens)} and {len(chain.right)}"
            )
        if chain.correct and not any(chain.right):
            raise ValueError(
                f"overthinking: chain {place} is correct, but none of its parts is"
            )


def _mean(values: Sequence[float]) -> float:
    return float(sum(values) / len(values)) if values else 0.0
