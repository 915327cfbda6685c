"""One student of many experts: who teaches what, and does the student see the effort?

There are D domains at E levels of effort, and an expert for each of the D x E. The
student has one set of weights for all: its logits are W phi, phi naming the domain and,
where the prompt has the tag, the effort. At every step it writes a few tokens for every
domain and effort, and is moved by on-policy distillation. Without the tag one answer
has to serve all efforts: at best the normalised geometric mean of a domain's experts.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from rlvr_jax.core.distillation import reverse_kl
from rlvr_jax.core.kl import kl_rewards
from rlvr_jax.core.losses import reinforce_loss

TOKENS = 8
WORDS, RATE = 64, 2.0
"""Tokens per domain, effort and step; step size of gradient descent."""


def experts(key: Key[Array, ""], domains: int, efforts: int) -> Float[Array, "C V"]:
    """Log-probs of every expert, domain by domain, effort by effort; C = D E.

    Args:
      key: consumed.
      domains: D.
      efforts: E.
    """
    logits = 1.5 * jax.random.normal(key, (domains * efforts, TOKENS))
    return jax.nn.log_softmax(logits)


def features(domains: int, efforts: int, *, tagged: bool) -> Float[Array, "C F"]:
    """What the student sees: the domain and, if `tagged`, the effort and both.

    What it learns of one effort moves the others, by the domain's own weights.
    """
    domain = jnp.repeat(jnp.eye(domains), efforts, axis=0)
    if not tagged:
        return domain
    effort = jnp.tile(jnp.eye(efforts), (domains, 1))
    return jnp.concatenate([domain, effort, jnp.eye(domains * efforts)], axis=1)


@functools.partial(jax.jit, static_argnames=("steps", "routed"))
def merged(
    keys: Key[Array, " seeds"],
    experts: Float[Array, "seeds C V"],
    features: Float[Array, "C F"],
    *,
    steps: int,
    routed: bool = True,
) -> Float[Array, "seeds K C"]:
    """KL of student and right expert, in nats, before each step.

    Args:
      keys: consumed; one run each, with its own experts.
      experts: log-probs.
      features: what the student sees of each domain and effort.
      steps: of on-policy distillation.
      routed: each prompt goes to its own expert; else to any, drawn anew.
    """
    places, seen = jnp.repeat(jnp.arange(len(features)), WORDS), features
    divergence = lambda weights, own: reverse_kl(seen @ weights, own)

    def run(key, own):
        def step(weights, key):
            write, ask = jax.random.split(key)
            tokens = jax.random.categorical(write, (seen @ weights)[places])[:, None]
            anyone = jax.random.randint(ask, places.shape, 0, len(seen))
            asked = own[places if routed else anyone]
            given = jnp.take_along_axis(asked, tokens, axis=1)

            def loss(weights):
                logprobs = jax.nn.log_softmax(seen @ weights)[places]
                written = jnp.take_along_axis(logprobs, tokens, axis=1)
                paid = kl_rewards(written, given, jnp.ones_like(given), beta=1.0)
                return reinforce_loss(written, paid).sum() / WORDS

            gradient = jax.grad(loss)(weights) / seen.sum(axis=1).max()
            return weights - RATE * gradient, divergence(weights, own)

        start = jnp.zeros((seen.shape[1], TOKENS))
        return jax.lax.scan(step, start, jax.random.split(key, steps))[1]

    return jax.vmap(run)(keys, experts)
