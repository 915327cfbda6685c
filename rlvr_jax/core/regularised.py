"""The objective of RLVR on answers that can be listed, and where it leads.

For bandits and checks by enumeration: everything is exact, nothing is sampled.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.core.groups import widened


def regularised_value(
    policy_logprobs: Float[Array, "*prompts N"],
    reference_logprobs: Float[Array, "*prompts N"],
    rewards: Float[Array, "*prompts N"],
    *,
    beta: float | Float[Array, ""],
) -> Float[Array, " *prompts"]:
    r"""What is maximised: E_pi[v] - beta KL(pi || ref), over all N answers.

    v is a number per answer: no gradient goes through it, as none goes through a
    verifier.

    Args:
      policy_logprobs: log pi of every answer, in nats; normalised.
      reference_logprobs: log ref of every answer; a constant.
      rewards: v of every answer; constants.
      beta: coefficient of the KL, in reward per nat.

    Returns:
      the value per prompt, in the unit of `rewards`. Answers with pi = 0 add nothing.

    References:
      Tulu 3, sec. 6. https://arxiv.org/abs/2411.15124

    Example:
      >>> even, rewards = jnp.log(jnp.array([0.5, 0.5])), jnp.array([1.0, 0.0])
      >>> print(regularised_value(even, even, rewards, beta=0.1))
      0.5
    """
    possible = policy_logprobs > -jnp.inf
    logprobs = jnp.where(possible, policy_logprobs, 0.0)
    reference = jax.lax.stop_gradient(jnp.where(possible, reference_logprobs, 0.0))
    gain = jax.lax.stop_gradient(widened(rewards)) - beta * (logprobs - reference)
    return jnp.where(possible, jnp.exp(logprobs) * gain, 0.0).sum(-1)


def regularised_optimum(
    reference_logprobs: Float[Array, "*prompts N"],
    rewards: Float[Array, "*prompts N"],
    *,
    beta: float | Float[Array, ""],
) -> Float[Array, "*prompts N"]:
    r"""The policy of highest `regularised_value`: the reference, tilted.

        pi* = ref exp(v / beta) / Z,   KL(pi* || ref) = E_pi*[v] / beta - log Z

    An answer that the reference never gives stays at 0 for every beta > 0: the optimum
    sharpens, it does not discover.

    Args:
      reference_logprobs: log ref of every answer, in nats; -inf where impossible.
      rewards: v of every answer.
      beta: coefficient of the KL, in reward per nat, above 0.

    Returns:
      log pi*, normalised.

    References:
      Rafailov et al. 2023, eq. 4. https://arxiv.org/abs/2305.18290

    Example:
      >>> even, rewards = jnp.log(jnp.array([0.5, 0.5])), jnp.array([1.0, 0.0])
      >>> print(f"{jnp.exp(regularised_optimum(even, rewards, beta=1.0))[0]:.3f}")
      0.731
    """
    return jax.nn.log_softmax(reference_logprobs + widened(rewards) / beta, axis=-1)
