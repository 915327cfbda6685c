"""`group_advantages` against a float64 loop, closed forms and its edges."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.advantages import group_advantages, group_std
from tests.core.variants import VARIANTS, run

OPTIONS = list(
    itertools.product(["mean", "leave_one_out"], ["group", "batch", "none"], [0, 1])
)
# Uneven groups (6, 3, 2, 1 rows), scattered; ids need not start at 0 or be dense.
GROUP_ID = np.array([3, 0, 3, 7, 3, 0, 3, 7, 0, 3, 5, 3], np.int32)
ROW_MASK = np.array([1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1], bool)
jit_group_advantages = jax.jit(
    group_advantages, static_argnames=("baseline", "scale", "ddof", "epsilon")
)


def loop(rewards, group_id, baseline, scale, ddof, epsilon=1e-6, row_mask=None):
    """The docstring's formula, one row at a time, in float64."""
    rewards = np.asarray(rewards, np.float64)
    kept = np.ones(len(rewards), bool) if row_mask is None else row_mask
    centred = np.zeros(len(rewards))
    spread = np.zeros(len(rewards))
    for i in np.flatnonzero(kept):
        group = [rewards[j] for j in np.flatnonzero(kept) if group_id[j] == group_id[i]]
        if min(group) == max(group):
            continue
        others = group.copy()
        others.remove(rewards[i])
        mean = np.mean(group if baseline == "mean" else others)
        centred[i] = rewards[i] - mean
        spread[i] = np.std(group, ddof=ddof)
    if scale == "none":
        return centred
    if scale == "batch":
        spread[:] = np.std(centred[kept], ddof=ddof)
    return np.where(centred == 0, 0, centred / (spread + epsilon))


def rewards_of(seed, size=12):
    return np.random.default_rng(seed).normal(size=size).round(2)


def in_groups(rewards, group_size):
    """Rewards [P, G] as rows with their group ids."""
    rewards = jnp.asarray(rewards)
    return rewards.reshape(-1), jnp.repeat(jnp.arange(len(rewards)), group_size)


def binary(right, of):
    return jnp.array([1.0] * right + [0.0] * (of - right))


@pytest.mark.parametrize("row_mask", [None, ROW_MASK])
@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_loop(row_mask, variant):
    def ours(rewards):
        """All options, one row each."""
        found = [
            group_advantages(
                rewards,
                jnp.asarray(GROUP_ID),
                baseline=baseline,
                scale=scale,
                ddof=ddof,
                row_mask=None if row_mask is None else jnp.asarray(row_mask),
            )
            for baseline, scale, ddof in OPTIONS
        ]
        return jnp.stack(found)

    batch = np.stack([rewards_of(seed) for seed in range(3)])
    found = run(variant, ours, batch)
    assert found.dtype == np.float64
    for n, rewards in enumerate(batch):
        for row, options in zip(found[n], OPTIONS, strict=True):
            expected = loop(rewards, GROUP_ID, *options, row_mask=row_mask)
            np.testing.assert_allclose(row, expected, atol=1e-12, err_msg=f"{options}")


@pytest.mark.parametrize(
    ("right", "of", "ddof", "expected"),
    [
        # (1 - 1/8) / sqrt(7/64) = sqrt(7); (0 - 1/8) / sqrt(7/64) = -1/sqrt(7)
        (1, 8, 0, (2.64575, -0.37796)),
        (7, 8, 0, (0.37796, -2.64575)),
        (1, 16, 0, (3.87298, -0.25820)),
        # sqrt(8/7) larger std
        (1, 8, 1, (2.47487, -0.35355)),
    ],
)
def test_one_right_of_eight(right, of, ddof, expected):
    """PG-07, PG-08, PG-16: recomputed in the comments."""
    rewards = binary(right, of)
    found = jit_group_advantages(
        rewards, jnp.zeros(of, int), ddof=ddof, epsilon=0.0 if ddof else 1e-9
    )
    np.testing.assert_allclose(
        found, np.where(rewards > 0, *expected), rtol=0, atol=1e-5
    )


def test_the_default_epsilon_costs_the_fifth_digit():
    """PG-07: .875 / (.330719 + 1e-6) = 2.645743, where sqrt(7) = 2.645751."""
    with jax.enable_x64(True):
        found = jit_group_advantages(jnp.float64(binary(1, 8)), jnp.zeros(8, int))
    np.testing.assert_allclose(found[:2], [2.645743, -0.377963], atol=5e-7)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
@pytest.mark.parametrize("baseline", ["mean", "leave_one_out"])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16, jnp.float64])
def test_equal_rewards_give_exactly_zero(dtype, baseline, scale):
    """PG-16, PG-18: also for rewards such as 0.7, whose float32 mean is not 0.7."""
    pairs = itertools.product(
        (0.1, 0.3, 0.7, 0.9, 1.1, 1 / 3, 1e4), (1, 2, 3, 6, 7, 8, 12, 16)
    )
    groups = [np.full(size, reward) for reward, size in pairs]
    group_id = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    with jax.enable_x64(dtype == jnp.float64):
        found = jit_group_advantages(
            jnp.asarray(np.concatenate(groups), dtype),
            jnp.asarray(group_id),
            baseline=baseline,
            scale=scale,
            ddof=1,
            epsilon=1e-12,
        )
    np.testing.assert_array_equal(found, 0)


def test_unanimous_groups_beside_a_mixed_one():
    """PG-18: the silent groups get 0, the mixed one what it would get alone."""
    rewards, prompt = in_groups([[0.7] * 4, [1, 0, 0, 1], [0, 0, 0, 0]], 4)
    found = jit_group_advantages(rewards, prompt)
    np.testing.assert_array_equal(found[:4], 0)
    np.testing.assert_array_equal(found[8:], 0)
    alone = jit_group_advantages(rewards[4:8], jnp.zeros(4, int))
    np.testing.assert_allclose(found[4:8], alone, rtol=1e-6)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
@pytest.mark.parametrize("baseline", ["mean", "leave_one_out"])
def test_masking_rows_equals_dropping_them(baseline, scale):
    """Also when the dropped rows hold NaN, and a whole group is dropped."""
    rewards = rewards_of(5).astype(np.float32)
    kept = (GROUP_ID != 7) & ROW_MASK
    options = dict(baseline=baseline, scale=scale, ddof=1)
    masked = jit_group_advantages(
        jnp.asarray(np.where(kept, rewards, np.nan)),
        jnp.asarray(GROUP_ID),
        row_mask=jnp.asarray(kept),
        **options,
    )
    dropped = jit_group_advantages(
        jnp.asarray(rewards[kept]), jnp.asarray(GROUP_ID[kept]), **options
    )
    np.testing.assert_allclose(masked[kept], dropped, rtol=1e-5)
    np.testing.assert_array_equal(masked[~kept], 0)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
@pytest.mark.parametrize("baseline", ["mean", "leave_one_out"])
def test_permuting_rows_permutes_advantages(baseline, scale):
    """Groups travel by id: neither their order nor their labels matter."""
    rewards, order = rewards_of(1), np.random.default_rng(2).permutation(12)
    relabel = np.random.default_rng(3).permutation(12)
    options = dict(baseline=baseline, scale=scale)
    straight = jit_group_advantages(
        jnp.asarray(rewards), jnp.asarray(GROUP_ID), **options
    )
    shuffled = jit_group_advantages(
        jnp.asarray(rewards[order]), jnp.asarray(relabel[GROUP_ID[order]]), **options
    )
    np.testing.assert_allclose(shuffled, straight[order], rtol=1e-5, atol=1e-7)


def test_advantages_of_a_group_sum_to_zero():
    found = jit_group_advantages(jnp.asarray(rewards_of(4)), jnp.asarray(GROUP_ID))
    sums = jax.ops.segment_sum(found, jnp.asarray(GROUP_ID), num_segments=12)
    np.testing.assert_allclose(sums, 0, atol=1e-5)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_everything_masked_gives_zero(scale):
    found = jit_group_advantages(
        jnp.arange(4.0), jnp.zeros(4, int), scale=scale, row_mask=jnp.zeros(4, bool)
    )
    np.testing.assert_array_equal(found, 0)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_no_gradient_reaches_the_rewards(scale):
    def total(rewards):
        found = jit_group_advantages(rewards, jnp.zeros(4, int), scale=scale)
        return jnp.sum(found**2)

    gradient = jax.grad(total)(jnp.array([0.1, 0.7, 0.7, 0.2]))
    np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.bool_, jnp.bfloat16, jnp.float16])
def test_short_types_are_widened_to_float32(dtype):
    found = jit_group_advantages(jnp.array([1, 0, 0, 1], dtype), jnp.zeros(4, int))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, [1, -1, -1, 1], rtol=1e-5)


def test_sharded_rows_equal_rows_on_one_device():
    """Statistics are global: the mesh sees one batch (here: one device, jitted)."""
    mesh = jax.make_mesh((len(jax.devices()),), ("data",))
    rows = jax.NamedSharding(mesh, jax.P("data"))
    rewards = jnp.asarray(rewards_of(6, 24))
    group_id = jnp.arange(24) % 5
    sharded = jax.jit(group_advantages, in_shardings=(rows, rows), out_shardings=rows)
    np.testing.assert_allclose(
        sharded(rewards, group_id), group_advantages(rewards, group_id), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("bad", "setting"),
    [
        (dict(baseline="median"), "objective.advantage"),
        (dict(scale="std"), "objective.scale_rewards"),
        (dict(ddof=2), "objective.std_ddof"),
    ],
)
def test_errors_name_the_setting(bad, setting):
    # Through the unchecked function: beartype refuses these before we do.
    unchecked = getattr(group_advantages, "__wrapped__", group_advantages)
    with pytest.raises(ValueError, match=setting):
        unchecked(jnp.ones(2), jnp.zeros(2, int), **bad)


def test_group_std_is_written_to_every_row():
    # Group 1: rewards 1 and 4, std sqrt((1.5^2 + 1.5^2) / 2) = 1.5, ddof=1 2.1213.
    rewards, group_id = jnp.array([1.0, 9.0, 4.0]), jnp.array([1, 0, 1])
    np.testing.assert_allclose(group_std(rewards, group_id), [1.5, 0, 1.5])
    np.testing.assert_allclose(
        group_std(rewards, group_id, ddof=1), [2.12132, 0, 2.12132], rtol=1e-5
    )
