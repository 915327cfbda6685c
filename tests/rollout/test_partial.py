"""Completions in parts: stopped at a budget and gone on with, as if never stopped."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.rollout import passage, resumed, slots
from rlvr_jax.rollout.completions import joined
from rlvr_jax.rollout.control import Control
from rlvr_jax.rollout.engine import Engine
from rlvr_jax.rollout.passage import Prompts
from rlvr_jax.rollout.sampler import Sampling, row_keys
from tests import tiny, tiny_experts

LENGTH = 20
PLAIN = Sampling(2, LENGTH, tiny.END_IDS)
NEVER = 10 * LENGTH
CONTROLS = {
    "free": Control(),
    # A sentence longer than every budget that stops within it, and a prefix.
    "budget": Control(close=(50, 51), budget=5, budget_text=(33, 34), prefix=(40,)),
    "waits": Control(close=(6,), least_thinking=12, wait=(30, 31), max_waits=2),
    "stops": Control(
        stop_texts=("6,",), decode=lambda ids: "".join(f"{i}," for i in ids)
    ),
}


@pytest.fixture(scope="module")
def policy():
    return tiny.policy()


def engine_of(policy, sampling=PLAIN, control=CONTROLS["free"], **settings):
    settings = {
        "num_slots": 8,
        "prompts_per_prefill": 4,
        "steps_per_call": 4,
    } | settings
    return Engine(policy[0], sampling, tiny.VOCAB, control=control, **settings)


def in_parts(engine, parameters, budget):
    """Every row gets `budget` more tokens at a time; parameters[i] of the i-th time."""
    tokens, lengths = tiny.prompts()
    prompts = Prompts(np.asarray(tokens), np.asarray(lengths))
    rows = engine.new_rows(row_keys(0, 0, jnp.arange(tiny.PROMPTS), 2))
    seen = []
    while not rows.finished.all():
        version = len(seen)
        weights = parameters[min(version, len(parameters) - 1)]
        before = rows.lengths.copy()
        limits = np.minimum(rows.lengths + budget, LENGTH)
        seen.append(engine.go_on(weights, prompts, rows, limits, version=version)[1])
        assert (rows.lengths <= before + budget).all()
        assert len(seen) <= 3 * LENGTH
    return rows, seen


def assert_same(found, expected):
    for name in ("tokens", "lengths", "ended", "kept", "routes"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
    written = np.arange(LENGTH) < expected.lengths[:, None]
    np.testing.assert_array_equal(found.forced[written], expected.forced[written])
    np.testing.assert_allclose(found.logprobs, expected.logprobs, atol=1e-5)


@pytest.mark.parametrize("budget", [1, 7, NEVER])
@pytest.mark.parametrize("control", CONTROLS)
def test_resumed_text_is_the_uninterrupted_text(policy, control, budget):
    """DATA-07: frozen weights, bit for bit; log-probs to rounding (the tokens so far
    are read side by side instead of one by one)."""
    engine = engine_of(policy, control=CONTROLS[control])
    whole, _ = in_parts(engine, policy[1:], NEVER)
    found, seen = in_parts(engine, policy[1:], budget)
    assert_same(found, whole)
    assert len(seen) == (
        1 if budget == NEVER else -(-whole.lengths.max() // budget)
    ) or (
        control != "free"  # cuts take tokens back
    )
    if control != "free":
        assert (whole.forced != slots.NOT_FORCED).any() or control == "stops"


def test_kept_sets_are_those_of_the_uninterrupted_text(policy):
    """DATA-07: what the sampler's cut left at each token comes along."""
    sampling = Sampling(2, LENGTH, tiny.END_IDS, temperature=0.6, top_p=0.8)
    engine = engine_of(policy, sampling)
    whole, _ = in_parts(engine, policy[1:], NEVER)
    assert (whole.kept > 0).any()
    assert_same(in_parts(engine, policy[1:], 7)[0], whole)


def test_experts_are_those_of_the_uninterrupted_text():
    """DATA-07: with frozen weights the routers pick the same experts again."""
    policy = tiny_experts.policy()
    engine = engine_of(policy)
    whole, _ = in_parts(engine, policy[1:], NEVER)
    assert (whole.routes > 0).any()
    assert_same(in_parts(engine, policy[1:], 7)[0], whole)


def test_every_token_names_the_policy_that_sampled_it(policy):
    """DATA-07: version ids are kept; a log-prob is that of its own version.

    The oracle is the trainer's pass over the whole text under each of the policies.
    """
    from rlvr_jax.train.forward import rollout_logprobs

    others = [tiny.policy(seed)[1] for seed in (0, 1, 2)]
    engine = engine_of(policy)
    rows, seen = in_parts(engine, others, 7)
    assert len(seen) == 3
    place = np.arange(LENGTH)
    written = place < rows.lengths[:, None]
    expected = np.broadcast_to(place // 7, written.shape)
    np.testing.assert_array_equal(rows.versions, np.where(written, expected, 0))
    tokens, lengths = (np.asarray(array) for array in tiny.prompts())
    rollouts = rows.as_rollouts(
        tokens, lengths, None, steered=False, with_versions=True
    )
    plan = tiny.plan(policy[0])
    for version, weights in enumerate(others):
        logprobs = np.asarray(rollout_logprobs(weights, rollouts, plan))
        own = written.reshape(8, 2, LENGTH) & (rollouts.versions == version)
        ours = np.asarray(rollouts.rollout_logprobs)
        assert own.sum() > 20
        np.testing.assert_allclose(ours[own], logprobs[own], atol=1e-5)
        away = written.reshape(8, 2, LENGTH) & (rollouts.versions != version)
        assert np.abs(ours[away] - logprobs[away]).mean() > 0.1


def test_a_pass_waits_for_no_straggler(policy):
    """Stragglers bounded: a pass decodes at most the budget for each filling of slots,
    and every row but its first time is read anew."""
    sampling = Sampling(2, LENGTH, end_ids=(-1,))
    engine = engine_of(policy, sampling, num_slots=16)
    _, seen = in_parts(engine, policy[1:], 7)
    assert [stats.decode_steps for stats in seen] == [7, 7, 6]
    assert [stats.resumed for stats in seen] == [0, 16, 16]
    assert [stats.tokens for stats in seen] == [16 * 7, 16 * 7, 16 * 6]


@pytest.mark.parametrize("share", [0.125, 0.25])
def test_a_pass_pauses_once_enough_are_finished(policy, share):
    """DATA-12: as in Kimi K3, all rest where they are when a share of all rollouts is
    done; with frozen weights the text is that of a run without a pause."""
    engine = engine_of(policy, num_slots=16, steps_per_call=1)
    whole, (once,) = in_parts(engine, policy[1:], NEVER)
    tokens, lengths = (np.asarray(array) for array in tiny.prompts())
    prompts = Prompts(tokens, lengths)
    rows = engine.new_rows(row_keys(0, 0, jnp.arange(tiny.PROMPTS), 2))
    enough = int(share * 16)
    stats = engine.go_on(policy[1], prompts, rows, enough=enough)[1]
    # A step may finish several at the same time.
    nth = np.sort(whole.lengths)[enough - 1]
    assert stats.decode_steps == nth < once.decode_steps
    np.testing.assert_array_equal(rows.lengths, np.minimum(whole.lengths, nth))
    assert enough <= rows.finished.sum() < 16
    engine.go_on(policy[1], prompts, rows)
    assert_same(rows, whole)


def test_nothing_compiles_after_the_first_resumed_pass(policy):
    """Whatever the number of prompts and of rows under way."""
    programs = (slots.prefill, slots.insert, slots.advance, resumed.resume)
    engine = engine_of(policy, num_slots=8)
    in_parts(engine, policy[1:], 7)
    sizes = [program._cache_size() for program in programs]
    tokens, lengths = (np.asarray(array) for array in tiny.prompts())
    for count in (3, 5):
        prompts = Prompts(tokens[:count], lengths[:count])
        rows = engine.new_rows(row_keys(1, 0, jnp.arange(count), 2))
        for limit in (4, 9):
            engine.go_on(policy[1], prompts, rows, np.full(2 * count, limit))
    assert [program._cache_size() for program in programs] == sizes


def test_a_sentence_longer_than_a_look_is_written_once(policy):
    """The budget's sentence is under way at the next look: it must not start again."""
    text = tuple(range(30, 40))
    control = Control(close=(50,), budget=5, budget_text=text)
    found, _ = in_parts(engine_of(policy, control=control), policy[1:], NEVER)
    np.testing.assert_array_equal(
        found.tokens[found.lengths > 15, 5:16],
        np.broadcast_to((*text, 50), ((found.lengths > 15).sum(), 11)),
    )


def test_rows_of_several_batches_go_side_by_side(policy):
    """Joined rows are those of their parts; parts without experts get zeros."""
    engine = engine_of(policy)
    a, b = (engine.new_rows(row_keys(s, 0, jnp.arange(2), 2)) for s in (0, 1))
    both = joined(
        [a, dataclasses.replace(b, routes=np.ones((4, LENGTH, 2, 2), np.uint8))]
    )
    np.testing.assert_array_equal(both.keys, np.concatenate([a.keys, b.keys]))
    assert both.routes[:4].sum() == 0
    assert both.routes[4:].min() == 1
    np.testing.assert_array_equal(both.rows(slice(4, 8)).keys, b.keys)


def test_spare_places_of_a_resumed_pass_go_nowhere(policy):
    """Three rows in eight places: the other slots keep what they have."""
    assert passage.RESUMED_AT_ONCE == 8
    engine = engine_of(policy)
    whole, _ = in_parts(engine, policy[1:], NEVER)
    tokens, lengths = (np.asarray(array) for array in tiny.prompts())
    prompts = Prompts(tokens, lengths)
    rows = engine.new_rows(row_keys(0, 0, jnp.arange(tiny.PROMPTS), 2))
    limits = np.zeros(16, int)
    limits[[1, 4, 5]] = 3
    engine.go_on(policy[1], prompts, rows, limits)
    assert rows.lengths[[1, 4, 5]].min() > 0
    engine.go_on(policy[1], prompts, rows)
    assert_same(rows, whole)
