"""On-policy distillation: the student writes, a teacher says what it would write.

With one sampled token per position the advantage is `kl.kl_rewards` (a constant); over
the whole vocabulary the divergence below can be differentiated as it stands.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def reverse_kl(
    policy_logits: Float[Array, "*rows V"], teacher_logits: Float[Array, "*rows V"]
) -> Float[Array, " *rows"]:
    r"""KL(student || teacher) of the next token, over the whole vocabulary.

        D = sum_v pi_S(v) (log pi_S(v) - log pi_T(v))

    Where the student has no mass it is not asked: D seeks modes, and is 0 only where
    both agree. Its gradient is the expectation, over tokens of the student, of
    (log pi_S - log pi_T) grad log pi_S with the log-ratio held constant.

    Args:
      policy_logits: of the student, at states that the student wrote.
      teacher_logits: of the teacher there; no gradient flows into them.

    Returns:
      the divergence per position, in nats.

    References:
      MiniLLM. https://arxiv.org/abs/2306.08543
      Generalized knowledge distillation (beta = 1). https://arxiv.org/abs/2306.13649

    Example:
      >>> student, teacher = jnp.log(jnp.array([[0.5, 0.5], [0.9, 0.1]]))
      >>> print(reverse_kl(student, teacher).round(4), reverse_kl(student, student))
      0.5108 0.0
    """
    student = jax.nn.log_softmax(policy_logits, axis=-1)
    teacher = jax.nn.log_softmax(jax.lax.stop_gradient(teacher_logits), axis=-1)
    return jnp.sum(jnp.exp(student) * (student - teacher), axis=-1)
