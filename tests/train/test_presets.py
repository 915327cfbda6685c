"""Every method through the fused step: it moves the policy, and no cut changes it."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rlvr_jax.config import Config, Objective, RolloutConfig
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.objective_rules import PER_TOKEN, SCALES, SURROGATE_READS
from rlvr_jax.train.credit import ADVANTAGES
from rlvr_jax.train.forward import rollout_logprobs
from rlvr_jax.train.micro_batches import packing_for
from rlvr_jax.train.step import Extras, train_step
from rlvr_jax.train.surrogates import SURROGATES
from rlvr_jax.validate import CHOICES, validate
from tests import bigram, tiny

ROUNDING = 2e-6
"""float32 sums in another order, through two updates; measured up to 5e-7."""


@pytest.fixture(scope="module")
def rollouts():
    """Completions with the bigram policy's log-probs, as a slightly other sampler."""
    drawn = tiny.rollouts(*tiny.policy())
    graphdef, parameters = bigram.policy()
    logprobs = rollout_logprobs(parameters, drawn, tiny.plan(graphdef))
    noise = 0.1 * jax.random.normal(jax.random.key(1), logprobs.shape)
    sampled = jnp.asarray(np.asarray(logprobs + noise))  # on no mesh yet
    return dataclasses.replace(drawn, rollout_logprobs=sampled)


@pytest.fixture(scope="module")
def short(rollouts):
    """The same of very different lengths, which leave rows to share."""
    # Some likely tokens are among these: the correlation of probabilities that are all
    # next to nothing would have no digits.
    half = jnp.array([[5, 1, 3, 1], [3, 7, 2, 1], [1, 4, 2, 3], [4, 3, 7, 2]])
    lengths = jnp.concatenate([half, half[:, ::-1]])  # minibatches differ
    lengths = jnp.minimum(lengths, rollouts.completion_lengths)
    return dataclasses.replace(rollouts, completion_lengths=lengths)


def objective_of(name, **changes):
    """The preset; where the tiny batch would leave it nothing to do, a wider one."""
    row = PRESETS[name] | changes
    if name == "passk":
        row |= {"passk_k": 2}
    if name == "mispo":
        row |= {"sequence_band": (0.95, 1.05)}
    if row.get("surrogate") in ("clip_cov", "kl_cov"):
        row |= {"covariance_fraction": 0.1}
    if row.get("surrogate") == "clip_cov":
        row |= {"covariance_min": 0.0}
    return Objective(name=name, **row)


def step_of(objective, rollouts, **options):
    """New state and metrics of one step with two updates."""
    graphdef, parameters = bigram.policy()
    plan = tiny.plan(graphdef, objective, **({"minibatches_per_step": 2} | options))
    state = tiny.state(parameters, plan)
    if state.reference is not None:  # a reference that differs, so that the KL acts
        nearby = jax.tree.map(lambda leaf: 0.9 * leaf, parameters)
        state = dataclasses.replace(state, reference=nearby)
    rewards = tiny.rewards()
    extras = Extras(
        reward_parts=jnp.stack([rewards, 1.0 - rewards * 0.5], axis=-1),
        part_weights=jnp.array([1.0, 0.5]),
        greedy_rewards=jnp.arange(tiny.PROMPTS) % 2.0,
        problem_ids=jnp.arange(tiny.PROMPTS)[::-1],
    )
    # Unoptimised programs: they compile in half the time and are run once.
    step = jax.jit(
        functools.partial(train_step, plan=plan),
        compiler_options={"xla_backend_optimization_level": 0},
    )
    packing, _ = packing_for(plan, rollouts)
    assert (packing is not None) == plan.batch.packing
    return step(state, rollouts, rewards, rewards, extras, packing)


def assert_same(found, expected):
    """Parameters and metrics of two steps agree to rounding."""
    new, metrics = found
    for part in ("parameters", "critic"):
        ours, theirs = getattr(new, part), getattr(expected[0], part)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            pair = jax.device_get((ours, theirs))
            assert tiny.largest_difference(*pair) < ROUNDING
    for name, value in metrics.items():
        np.testing.assert_allclose(
            value, expected[1][name], rtol=5e-5, atol=2e-6, err_msg=name
        )


@pytest.mark.parametrize("name", PRESETS)
def test_preset_trains_and_no_cut_changes_it(rollouts, name):
    """CLIP-06: finite, moving, and the same in micro-batches on two devices."""
    objective = objective_of(name)
    config = Config(rollout=RolloutConfig(num_generations=4), objective=objective)
    validate(config)
    whole = step_of(objective, rollouts)
    assert all(np.isfinite(value).all() for value in whole[1].values())
    moved = tiny.largest_difference(whole[0].parameters, bigram.policy()[1])
    assert moved > 1e-5
    cut = step_of(objective, rollouts, micro_batch_size=8, mesh_shape=(1, 2, 1))
    assert_same(cut, whole)


@pytest.mark.parametrize(
    "name",
    [
        name
        if name in ("dapo", "gspo", "clip_cov")
        else pytest.param(name, marks=pytest.mark.slow)
        for name in PRESETS
    ],
)
def test_packed_rows_change_no_preset(short, name):
    """CLIP-06: two minibatches in micro-batches of two groups each, on two devices."""
    run = functools.partial(step_of, objective_of(name), short, micro_batch_size=8)
    packed = run(packing=True, mesh_shape=(1, 2, 1))
    assert_same(packed, run())
    assert tiny.largest_difference(packed[0].parameters, bigram.policy()[1]) > 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("loss_aggregation", CHOICES["objective.loss_aggregation"])
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_surrogate_and_aggregation_grid(short, surrogate, loss_aggregation):
    """Each surrogate under each aggregation: neither a group cut in two nor packed rows
    change anything."""
    objective = objective_of(
        "grpo",
        surrogate=surrogate,
        loss_aggregation=loss_aggregation,
        epsilon_low=0.1,
        epsilon_high=0.1,
    )
    # A sum over tokens is some hundred times a mean: as much smaller a step.
    rate = 1e-3 if loss_aggregation == "token_sum" else 0.1
    run = functools.partial(step_of, objective, short, optimizer=optax.sgd(rate))
    whole = run()
    assert tiny.largest_difference(whole[0].parameters, bigram.policy()[1]) > 1e-5
    assert_same(run(micro_batch_size=2), whole)
    assert_same(run(packing=True), whole)


def test_tables_and_choices_agree():
    """A choice that a run may name is one that the step knows, and the reverse."""
    assert tuple(SURROGATES) == tuple(SURROGATE_READS) == CHOICES["objective.surrogate"]
    assert set(ADVANTAGES) == set(SCALES) == set(CHOICES["objective.advantage"])
    assert set(PER_TOKEN) <= set(ADVANTAGES)
    fields = {field.name for field in dataclasses.fields(Objective)}
    for name, row in PRESETS.items():
        assert set(row) <= fields, name
