"""One policy over strategies that many problems share: what a tilt can and cannot do.

Strategy s solves problem x with chance r[x, s]; the policy pi is over strategies, the
same for every problem. RLVR is then the tilt pi' ~ pi exp(eta u) by a strategy's mean
reward u: it moves mass between strategies that are there and makes no new ones. Whether
it can widen what is solved is decided by this assumption, not found by it.
"""

import jax
from jaxtyping import Array, Float


def solve_rates(
    logits: Float[Array, " S"], solves: Float[Array, "N S"]
) -> Float[Array, " N"]:
    """Chance of a right sample per problem, sum_s pi(s) r[x, s]."""
    return solves @ jax.nn.softmax(logits)


def tilt(
    logits: Float[Array, " S"],
    solves: Float[Array, "N S"],
    eta: float | int | Float[Array, ""],
) -> Float[Array, " S"]:
    """The policy after training, as logits: pi exp(eta u), u the mean reward.

    The mean reward never falls along eta: its slope is the variance of u under pi'.

    Example:
      >>> equal, solves = jax.numpy.zeros(2), jax.numpy.eye(2)[:1]
      >>> print(jax.nn.softmax(tilt(equal, solves, jax.numpy.log(3.0))).round(2))
      [0.75 0.25]
    """
    return logits + eta * solves.mean(0)


def expected_reward_gradient(
    policy: Float[Array, " S"], rewards: Float[Array, " S"]
) -> Float[Array, " S"]:
    """d E[r] / d logits = pi (r - E r): exactly 0 where pi is."""
    return policy * (rewards - policy @ rewards)


def imitation_gradient(
    policy: Float[Array, " S"], teacher: Float[Array, " S"]
) -> Float[Array, " S"]:
    """d E_teacher[log pi] / d logits = teacher - pi: reaches what pi never does."""
    return teacher - policy


def joint_rate(skills: Float[Array, " D"]) -> Float[Array, ""]:
    """Chance of a problem that needs every one of some independent skills."""
    return jax.nn.sigmoid(skills).prod()


def practise(
    skills: Float[Array, " D"], *, steps: int, learning_rate: float, joint: bool
) -> Float[Array, " D"]:
    """Exact policy gradient on Bernoulli skills, given by their logits.

    Args:
      skills: log(p / (1 - p)) of each.
      steps: updates.
      learning_rate: of gradient ascent.
      joint: train on the problem that needs all, instead of on each skill alone.

    Returns:
      the logits afterwards.
    """
    each = lambda skills: jax.nn.sigmoid(skills).sum()
    objective = joint_rate if joint else each

    def update(skills, _):
        return skills + learning_rate * jax.grad(objective)(skills), None

    return jax.lax.scan(update, skills, length=steps)[0]
