"""Sampling from the sharpened base model, p^alpha / Z, without any training.

The base model here is a Markov chain over a few tokens, so that the target can be
enumerated. A temperature per token is not the same: it sharpens every choice by itself,
and does not see where a likely first token leads.
"""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key


class Chain(NamedTuple):
    """A base model whose next token depends on the last one."""

    first: Float[Array, " V"]
    """Log-probs of the first token."""
    following: Float[Array, "V V"]
    """Log-probs of the next token (column) after each token (row)."""


def logprob(chain: Chain, tokens: Int[Array, "*n T"]) -> Float[Array, " *n"]:
    """log p of whole sequences."""
    steps = chain.following[tokens[..., :-1], tokens[..., 1:]]
    return chain.first[tokens[..., 0]] + steps.sum(-1)


def enumerate_all(vocab: int, length: int) -> Int[np.ndarray, "N T"]:
    """Every sequence, in lexicographic order."""
    return np.array(list(itertools.product(range(vocab), repeat=length)))


def tempered(chain: Chain, temperature: float) -> Chain:
    """The chain whose every choice is made at this temperature."""
    return Chain(
        jax.nn.log_softmax(chain.first / temperature),
        jax.nn.log_softmax(chain.following / temperature, axis=-1),
    )


@functools.partial(jax.jit, static_argnames=("length", "alpha", "steps"))
def power_sample(
    keys: Key[Array, " n"], chain: Chain, *, length: int, alpha: float, steps: int
) -> Int[Array, "n T"]:
    """Metropolis-Hastings towards p^alpha, one chain per key (consumed).

    A step cuts the sequence at a uniform place, draws the rest anew at temperature
    1 / alpha, and accepts with min(1, exp(alpha (log p' - log p) + log q - log q')).

    Args:
      keys: one sample each.
      chain: the base model.
      length: tokens of a sequence.
      alpha: the power; 1 is the base itself (4 in the paper).
      steps: Metropolis-Hastings steps; enough of them reach the target.

    Returns:
      the sequences.

    References:
      Reasoning with Sampling. https://arxiv.org/abs/2510.14901
    """
    proposal = tempered(chain, 1 / alpha)

    def propose(key, tokens, cut):
        """`tokens` up to the cut, then fresh ones."""

        def step(last, place):
            drawn = jax.random.categorical(
                jax.random.fold_in(key, place),
                jnp.where(place == 0, proposal.first, proposal.following[last]),
            )
            token = jnp.where(place < cut, tokens[place], drawn)
            return token, token

        return jax.lax.scan(step, tokens[0], jnp.arange(length))[1]

    def suffix(tokens, cut):
        """log q of what a proposal at the cut draws."""
        steps = proposal.following[tokens[:-1], tokens[1:]]
        each = jnp.concatenate([proposal.first[tokens[:1]], steps])
        return jnp.where(jnp.arange(length) >= cut, each, 0.0).sum()

    def step(tokens, key):
        place, draw, coin = jax.random.split(key, 3)
        cut = jax.random.randint(place, (), 0, length)
        new = propose(draw, tokens, cut)
        log_accept = alpha * (logprob(chain, new) - logprob(chain, tokens))
        log_accept += suffix(tokens, cut) - suffix(new, cut)
        accepted = jnp.log(jax.random.uniform(coin)) < log_accept
        return jnp.where(accepted, new, tokens), None

    def run(key):
        start, rest = jax.random.split(key)
        tokens = propose(start, jnp.zeros(length, int), 0)
        return jax.lax.scan(step, tokens, jax.random.split(rest, steps))[0]

    return jax.vmap(run)(keys)
