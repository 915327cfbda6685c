"""A teacher at hand: imitate it, be corrected by it, or do without, word for word.

The tasks and the base are those of `boundary`: words of letters that must all be right,
most of them never so among the base's samples. A teacher knows some letters better and
is the base itself in the others, as a specialist of the same base is. At each step all
arms learn from as many words of the same tasks:

    imitation      words of the teacher, by their likelihood
    on policy      words of the student; each letter is paid log teacher - log student
    RL             words of the student, paid if right (`boundary.reinforced`)

RL hears of a word as a whole, and of most tasks nothing. Both kinds of distillation
hear of every letter, but only what the teacher knows.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from rlvr_jax.core.imitation import imitation_loss
from rlvr_jax.core.kl import kl_rewards
from rlvr_jax.core.losses import reinforce_loss
from rlvr_jax.toys.boundary import GENERATIONS, RATE, TOKENS, Base


def teacher(
    base: Base, known: Bool[Array, " L"], sure: float | Float[Array, ""]
) -> Float[Array, "L V"]:
    """Log-probs of a teacher of the same base.

    Args:
      base: what it is in the letters that it does not know.
      known: letters whose right token it says with probability `sure`.
      sure: in (0, 1).
    """
    rest = (1 - sure) / (TOKENS - 1)
    said = jnp.log(jnp.where(jnp.arange(TOKENS) == 0, sure, rest))
    return jnp.where(known[:, None], said, jax.nn.log_softmax(base.logits))


@functools.partial(jax.jit, static_argnames=("steps", "on_policy"))
def distilled(
    keys: Key[Array, " seeds"],
    bases: Base,
    teachers: Float[Array, "seeds L V"],
    *,
    steps: int,
    on_policy: bool,
) -> Float[Array, "seeds K L V"]:
    """The logits after every step on words of the hard tasks.

    Args:
      keys: consumed, one per base.
      bases: of `boundary.draw`, stacked.
      teachers: of `teacher`, one per base.
      steps: of `GENERATIONS` words of every hard task each.
      on_policy: the student writes; else the teacher does.
    """

    def loss(logits, key, base, teacher):
        letters = jnp.repeat(base.hard, GENERATIONS, axis=0)
        writer = jax.lax.stop_gradient(logits) if on_policy else teacher
        words = jax.random.categorical(key, writer[letters])
        logprobs = jax.nn.log_softmax(logits)[letters, words]
        if on_policy:
            given = teacher[letters, words]
            paid = kl_rewards(logprobs, given, jnp.ones_like(given), beta=1.0)
            each = reinforce_loss(logprobs, paid)
        else:
            each = imitation_loss(logprobs)
        return each.sum(axis=1).mean()

    def run(key, base, teacher):
        def step(logits, key):
            new = logits - RATE * jax.grad(loss)(logits, key, base, teacher)
            return new, new

        return jax.lax.scan(step, base.logits, jax.random.split(key, steps))[1]

    return jax.vmap(run)(keys, bases, teachers)
