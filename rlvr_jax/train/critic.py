"""The value model of advantage "gae": the policy's copy with a head of one number."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jaxtyping import Array, Float, Int

from rlvr_jax.config import CriticConfig
from rlvr_jax.core import critic, diagnostics
from rlvr_jax.train.forward import (
    by_completion,
    completion_states,
    decoder_of,
    flat,
    laid_out,
)
from rlvr_jax.train.micro_batches import (
    Prompts,
    by_micro_batches,
    mean_gradients,
    split_micro_batches,
)
from rlvr_jax.train.objective import Rows
from rlvr_jax.train.packing import Packing
from rlvr_jax.train.state import CriticState, StepPlan
from rlvr_jax.types import Ratio, Rollouts

ATTENTION = ("attention_norm", "query", "key", "value", "output")
"""Parameters of attention, by the beginning of their names."""


def new_critic(policy: nnx.State, width: int) -> dict[str, Any]:
    """Parameters of a critic that starts from the policy and values all at 0."""
    return {
        "decoder": jax.tree.map(jnp.copy, policy),
        "value_head": jnp.zeros(width),
        "value_bias": jnp.zeros(()),
    }


def token_values(
    parameters: dict[str, Any],
    prompts: Prompts,
    completion_tokens: Int[Array, "P G T"],
    plan: StepPlan,
) -> Float[Array, "B T"]:
    """V before each completion token: what the critic expects from it on."""
    decoder = decoder_of(parameters["decoder"], plan)
    return values_by(decoder, parameters, prompts, completion_tokens)


def values_by(
    decoder: Any,
    parameters: dict[str, Any],
    prompts: Prompts,
    completion_tokens: Int[Array, "P G T"],
) -> Float[Array, "B T"]:
    """The head's number of the state before each completion token."""
    read = laid_out(prompts, completion_tokens)
    states = flat(completion_states(decoder, prompts, read)[0]).astype(jnp.float32)
    values = states @ parameters["value_head"] + parameters["value_bias"]
    return by_completion(prompts, values)


def batch_values(
    parameters: dict[str, Any],
    rollouts: Rollouts,
    plan: StepPlan,
    packing: Packing | None = None,
) -> Float[Array, "P G T"]:
    """Values of a whole batch by micro-batches, without a gradient."""

    def some(prompts, rows):
        return token_values(parameters, prompts, rows, plan)

    prompts = Prompts(rollouts.prompt_tokens, rollouts.prompt_lengths, packing=packing)
    return by_micro_batches(some, prompts, rollouts.completion_tokens, plan)


def update_critic(
    state: CriticState, prompts: Prompts, rows: Rows, value_clip: float, plan: StepPlan
) -> tuple[CriticState, dict[str, Ratio]]:
    """Regresses the critic on the minibatch's targets, `updates_per_minibatch` times.

    The loss is the mean over sampled tokens of `core.critic.value_loss`.
    """
    settings, optimizer = plan.critic, plan.critic_optimizer
    assert settings is not None
    assert optimizer is not None
    tokens = rows.token_mask.sum()
    micros = split_micro_batches(prompts, rows, plan.batch.micro_batch_size)

    def loss(parameters, prompts, rows):
        values = token_values(parameters, prompts, rows.completion_tokens, plan)
        old, targets = flat(rows.old_values), flat(rows.value_targets)
        mask = flat(rows.token_mask)
        error = critic.value_loss(values, old, targets, clip=value_clip or None)
        clipped = critic.value_clip_fraction(
            values, old, targets, mask, clip=value_clip or jnp.inf
        )
        mean = diagnostics.masked_mean(error, mask)
        sums = {"critic/loss": mean, "critic/clip_share": clipped}
        return mean.numerator, jax.lax.stop_gradient(sums)

    def once(state, _):
        gradients, (_, sums) = mean_gradients(
            loss, state.parameters, micros, tokens, plan
        )
        gradients = _trained(gradients, settings)
        changes, moments = optimizer.update(
            gradients, state.optimizer, state.parameters
        )
        changes = _trained(changes, settings)  # weight decay would move them
        updated = cast(dict[str, Any], optax.apply_updates(state.parameters, changes))
        new = CriticState(updated, moments)
        usable = jnp.isfinite(optax.tree.norm(gradients)) & (tokens > 0)
        new = jax.tree.map(lambda a, b: jnp.where(usable, a, b), new, state)
        return new, jax.tree.map(jnp.sum, sums)

    state, sums = jax.lax.scan(once, state, length=settings.updates_per_minibatch)
    return state, jax.tree.map(jnp.sum, sums)


def _trained(leaves: Any, settings: CriticConfig) -> Any:
    """Gradients or changes, with those of frozen parameters at 0."""
    if not settings.freeze_attention:
        return leaves

    def trained(path, leaf):
        names = [key.key for key in path if isinstance(key, jax.tree_util.DictKey)]
        frozen = any(name.startswith(ATTENTION) for name in names[1:])
        return jnp.zeros_like(leaf) if frozen else leaf

    return jax.tree_util.tree_map_with_path(trained, leaves)


def critic_metrics(
    values: Float[Array, "P G T"], returns: Float[Array, "P G T"], mask: Array
) -> dict[str, Float[Array, ""]]:
    """How well the critic knew the returns before it learned from them."""
    rows = (flat(values), flat(returns), flat(mask))
    bias = critic.value_bias_by_progress(*rows, bins=4)
    return {
        "critic/explained_variance": critic.explained_variance(*rows),
        "critic/bias_first": bias[0],
        "critic/bias_last": bias[-1],
        "critic/value_mean": diagnostics.masked_mean(rows[0], rows[2]).value(),
        "critic/return_mean": diagnostics.masked_mean(rows[1], rows[2]).value(),
    }
