"""The engine against the plain sampler: the same completions, whatever the slots."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.rollout.engine import Engine
from rlvr_jax.rollout.sampler import Sampling, row_keys, sample
from tests import tiny, tiny_experts


@pytest.fixture(scope="module")
def policy():
    return tiny.policy()


def run(policy, sampling, *, limits=None, **settings):
    tokens, lengths = tiny.prompts()
    keys = row_keys(0, 0, jnp.arange(tiny.PROMPTS), sampling.num_generations)
    engine = Engine(policy[0], sampling, tiny.VOCAB, **settings)
    finished = []

    def note(number, tokens, ended):
        finished.append((number, tokens.copy(), ended))

    rollouts, stats = engine(
        policy[1],
        np.asarray(tokens),
        np.asarray(lengths),
        keys,
        limits=limits,
        on_finished=note,
    )
    return rollouts, stats, finished


def plain(policy, sampling):
    tokens, lengths = tiny.prompts()
    keys = row_keys(0, 0, jnp.arange(tiny.PROMPTS), sampling.num_generations)
    return sample(*policy, tokens, lengths, keys, sampling=sampling)


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(4, 7, tiny.END_IDS),
        Sampling(4, 7, tiny.END_IDS, temperature=0.6, top_p=0.8),
    ],
    ids=["plain", "truncated"],
)
@pytest.mark.parametrize("num_slots", [8, 32])
def test_completions_are_those_of_the_sampler(policy, sampling, num_slots):
    """Eight slots for 32 completions, and one slot for each."""
    expected = plain(policy, sampling)
    found, stats, finished = run(
        policy, sampling, num_slots=num_slots, prompts_per_prefill=2, steps_per_call=3
    )
    np.testing.assert_array_equal(found.completion_tokens, expected.completion_tokens)
    np.testing.assert_array_equal(found.completion_lengths, expected.completion_lengths)
    np.testing.assert_array_equal(found.ended, expected.ended)
    np.testing.assert_allclose(
        found.rollout_logprobs, expected.rollout_logprobs, atol=1e-5
    )
    if sampling.truncates:
        np.testing.assert_array_equal(found.kept_tokens, expected.kept_tokens)
    # Each completion was announced once, as it is in the result.
    assert sorted(number for number, _, _ in finished) == list(range(32))
    for number, tokens, ended in finished:
        at = divmod(number, 4)
        count = int(found.completion_lengths[at])
        np.testing.assert_array_equal(tokens, found.completion_tokens[at][:count])
        assert ended == bool(found.ended[at])
    assert stats.tokens == int(found.completion_lengths.sum())


def test_short_completions_do_not_wait_for_long_ones(policy):
    """One completion in eight is long: the slots are filled up in the meantime."""
    sampling = Sampling(4, 64, end_ids=(-1,))
    limits = np.full((tiny.PROMPTS, 4), 4)
    limits[:, 0] = 64
    _, stats, finished = run(
        policy, sampling, limits=limits, num_slots=16, steps_per_call=4
    )
    assert stats.tokens == limits.sum()
    together = limits.size * 64  # what one batch of all 32 would decode
    assert stats.slot_steps < together / 2
    assert 0 < stats.padding_share < 0.5
    short = [len(tokens) for _, tokens, _ in finished]
    assert sorted(short[:8]) == [4] * 8


def test_nothing_compiles_after_the_first_batch(policy):
    from rlvr_jax.rollout import slots

    sampling = Sampling(4, 7, tiny.END_IDS)
    settings = {"num_slots": 16, "prompts_per_prefill": 4, "steps_per_call": 3}
    run(policy, sampling, **settings)
    programs = (slots.advance, slots.insert, slots.packed, slots.prefill)
    sizes = [program._cache_size() for program in programs]
    run(policy, sampling, **settings)
    assert [program._cache_size() for program in programs] == sizes


def test_routes_are_those_of_the_sampler():
    """CLIP-14: experts of prompts and completions, whichever slot a row was in."""
    policy, sampling = tiny_experts.policy(), Sampling(4, 7, tiny.END_IDS)
    expected = plain(policy, sampling)
    found, _, _ = run(
        policy, sampling, num_slots=8, prompts_per_prefill=2, steps_per_call=3
    )
    np.testing.assert_array_equal(found.completion_tokens, expected.completion_tokens)
    assert (np.asarray(expected.routes) > 0).mean() > 0.2
    np.testing.assert_array_equal(found.routes, expected.routes)
    inside = np.arange(tiny.SLOTS) >= tiny.SLOTS - tiny.prompts()[1][:, None]
    np.testing.assert_array_equal(
        np.asarray(found.prompt_routes)[inside],
        np.asarray(expected.prompt_routes)[inside],
    )
