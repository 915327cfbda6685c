"""Completions that share rows: the same numbers as with a row for each."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax.sharding import PartitionSpec

from rlvr_jax.config import Objective
from rlvr_jax.mesh.mesh import make_mesh, put
from rlvr_jax.models import attention
from rlvr_jax.models.lora import add_adapters
from rlvr_jax.train.forward import completion_logprobs
from rlvr_jax.train.micro_batches import by_micro_batches, packing_for, prompts_of
from rlvr_jax.train.packing import Packing, pack
from rlvr_jax.train.step import train_step
from tests import bigram, tiny, tiny_experts

TOKENS = 16
LENGTHS = np.array(
    [
        [16, 1, 1, 1],
        [1, 2, 3, 2],
        [5, 16, 9, 16],  # needs three rows, the others one or two
        [4, 4, 4, 4],
        [1, 1, 1, 1],
        [9, 7, 8, 8],
        [3, 16, 2, 7],
        [2, 2, 5, 6],
    ],
    np.int32,
)
SHORT = np.minimum(LENGTHS, 7)
LOGPROB_ROUNDING = 4e-6
"""Two units in the last place of log-probs of up to 18 nats; measured 3.8e-6."""
ROUNDING = 2e-6
"""float32 sums in another order, through two updates, as in test_presets.py."""
UNOPTIMISED = {"xla_backend_optimization_level": 0}
"""Programs that are run once compile in half the time."""
ONE = make_mesh((1, 1, 1), jax.devices()[:1])


def cut(policy, lengths=LENGTHS, **sampling):
    """Rollouts of the policy, cut to `lengths`."""
    drawn = tiny.rollouts(*policy, length=TOKENS, **sampling)
    return dataclasses.replace(drawn, completion_lengths=jnp.asarray(lengths))


@pytest.fixture(scope="module")
def policy():
    return tiny.policy()


@pytest.fixture(scope="module")
def rollouts(policy):
    return cut(policy)


def with_more_rows(packing: Packing, count: int) -> Packing:
    """The same with empty rows at the end, for one device."""
    source = np.asarray(packing.source)
    empty = np.full((source.shape[0], count, source.shape[2]), -1, np.int32)
    source = np.concatenate([source, empty], axis=1)
    return dataclasses.replace(packing, source=put(source, ONE, PartitionSpec()))


# The layout


@pytest.mark.parametrize("prompts", [1, 2, 8])
@pytest.mark.parametrize("mesh_shape", [(1, 1, 1), (2, 1, 1), (2, 2, 1)])
def test_each_token_has_one_slot_in_a_row_of_its_prompt(prompts, mesh_shape):
    """And rows that a device holds follow prompts that it holds."""
    size = mesh_shape[0] * mesh_shape[1]
    mesh = make_mesh(mesh_shape, jax.devices()[:size])
    lengths = SHORT if prompts < size else LENGTHS
    packing = pack(lengths, TOKENS, micro_batch_prompts=prompts, mesh=mesh)
    source, slots = np.asarray(packing.source), np.asarray(packing.slots)
    assert source.shape[0] == slots.shape[0] == tiny.PROMPTS // prompts
    assert source.shape[1] % size == 0
    assert source[0].size < 0.9 * slots[0].size
    seen = slots >= 0
    np.testing.assert_array_equal(seen.sum(-1).reshape(lengths.shape), lengths)
    per_block = prompts // packing.blocks
    for rows, places in zip(source, slots, strict=True):
        tokens = np.flatnonzero(places >= 0)
        found = rows.reshape(-1)[places.reshape(-1)[tokens]]
        np.testing.assert_array_equal(found, tokens)
        assert (rows >= 0).sum() == len(tokens)
        for index, row in enumerate(rows):
            of = set((row[row >= 0] // (tiny.GENERATIONS * TOKENS)).tolist())
            assert len(of) <= 1
            blocks = {prompt // per_block for prompt in of}
            assert blocks <= {index // (len(rows) // packing.blocks)}


def test_the_number_of_rows_by_hand():
    """First fit by decreasing length: prompts need 2, 1, 3, 1, 1, 2, 2 and 1 rows.

    13 rows, rounded up to 14 = 7 * 2. Halved rows of 8 slots hold the short ones: each
    prompt's lengths of up to 7 need 2, 1, 4, 2, 1, 4, 3, 2 of them, 19, rounded to 20.
    """
    packing = functools.partial(pack, micro_batch_prompts=8, mesh=ONE)
    assert packing(LENGTHS, TOKENS).source.shape == (1, 14, 16)
    assert packing(SHORT, TOKENS).source.shape[1:] in [(10, 16), (20, 8)]
    # Nothing to save: no packing.
    assert packing(np.full_like(LENGTHS, 16), TOKENS) is None
    assert packing(np.full_like(LENGTHS, 9), TOKENS) is None


def test_shares_that_are_logged(policy, rollouts):
    """Sum of LENGTHS over 32 rows of 16 slots, and over 14."""
    total = LENGTHS.sum()
    plan = tiny.plan(policy[0], packing=True)
    packing, shares = packing_for(plan, rollouts)
    assert packing.source.shape == (1, 14, 16)
    np.testing.assert_allclose(
        [shares["update/padding_share"], shares["update/padding_share_unpacked"]],
        [1 - total / (14 * 16), 1 - total / (32 * 16)],
    )
    none, shares = packing_for(tiny.plan(policy[0]), rollouts)
    assert none is None
    assert shares == {"update/padding_share": 1 - total / (32 * 16)}


# Log-probs


@functools.cache
def program(graphdef, micro_batch_size=0, **options):
    plan = tiny.plan(graphdef, micro_batch_size=micro_batch_size, **options)

    def outputs(parameters, rollouts, packing):
        def some(prompts, rows):
            tokens, kept, routes = rows
            return completion_logprobs(parameters, prompts, tokens, kept, plan, routes)

        prompts = prompts_of(rollouts, plan, packing)
        rows = (rollouts.completion_tokens, rollouts.kept_tokens, rollouts.routes)
        return by_micro_batches(some, prompts, rows, plan)

    return jax.jit(outputs, compiler_options=UNOPTIMISED)


def assert_same_logprobs(policy, rollouts, packing, micro_batch_size=0, **options):
    """Log-probs and entropies of all tokens, and 0 at padding."""
    plain = program(policy[0], **options)(policy[1], rollouts, None)
    shared = program(policy[0], micro_batch_size, **options)(
        policy[1], rollouts, packing
    )
    mask = np.asarray(rollouts.token_mask)
    for ours, theirs in zip(shared, plain, strict=True):
        np.testing.assert_allclose(
            np.asarray(ours)[mask], np.asarray(theirs)[mask], atol=LOGPROB_ROUNDING
        )
        assert (np.asarray(ours)[~mask] == 0).all()


@pytest.mark.parametrize(
    "micro_batch_size",
    [
        8,
        pytest.param(0, marks=pytest.mark.slow),
        pytest.param(4, marks=pytest.mark.slow),
    ],
)
def test_logprobs_and_entropies(policy, rollouts, micro_batch_size):
    """The expected values have a row for each completion."""
    prompts = (micro_batch_size or 32) // tiny.GENERATIONS
    packing = pack(LENGTHS, TOKENS, micro_batch_prompts=prompts, mesh=ONE)
    assert_same_logprobs(policy, rollouts, packing, micro_batch_size)


@pytest.mark.slow
def test_any_number_of_rows_and_shorter_rows(policy):
    packing = pack(SHORT, TOKENS, micro_batch_prompts=8, mesh=ONE)
    assert packing.source.shape == (1, 20, 8)
    assert_same_logprobs(policy, cut(policy, SHORT), packing)
    long = pack(LENGTHS, TOKENS, micro_batch_prompts=8, mesh=ONE)
    assert_same_logprobs(policy, cut(policy), with_more_rows(long, 5))


def test_blocks_of_queries(policy, rollouts, monkeypatch):
    """Long rows attend a block at a time: 15 positions in blocks of 4, the last padded.

    The expected values are of all positions at once.
    """
    packing = pack(LENGTHS, TOKENS, micro_batch_prompts=2, mesh=ONE)
    whole = program(policy[0], 8)(policy[1], rollouts, packing)
    monkeypatch.setattr(attention, "QUERY_BLOCK", 4)
    cut_up = program.__wrapped__(policy[0], 8)(policy[1], rollouts, packing)
    for ours, theirs in zip(cut_up, whole, strict=True):
        # Seven units in the last place of 9.1 nats were measured.
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=LOGPROB_ROUNDING)


def test_kept_sets_travel_with_their_tokens(policy):
    """CLIP-32: under top-p the log-probs are of the sampler's own kept sets."""
    drawn = tiny.rollouts(*policy, length=TOKENS, top_p=0.9)
    lengths = np.minimum(np.asarray(drawn.completion_lengths), LENGTHS)
    drawn = dataclasses.replace(drawn, completion_lengths=jnp.asarray(lengths))
    packing = pack(lengths, TOKENS, micro_batch_prompts=8, mesh=ONE)
    assert_same_logprobs(policy, drawn, packing)


@pytest.mark.parametrize("experts", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nothing_leaks_between_completions(policy, rollouts, experts):
    """Other tokens in one completion leave all others' log-probs bit for bit."""
    if experts:
        policy = tiny_experts.policy()
        rollouts = cut(policy)
    packing = pack(LENGTHS, TOKENS, micro_batch_prompts=8, mesh=ONE)
    run = functools.partial(program(policy[0]), policy[1])
    # The last row of prompt 5 holds two completions, prompt 3's holds four.
    for changed in ((5, 1), (3, 0), (3, 2), (2, 0)):
        tokens = rollouts.completion_tokens
        other = tokens.at[changed].set((tokens[changed] + 7) % tiny.VOCAB)
        moved = dataclasses.replace(rollouts, completion_tokens=other)
        before, after = run(rollouts, packing), run(moved, packing)
        others = np.ones(LENGTHS.shape, bool)
        others[changed] = False
        for ours, theirs in zip(before, after, strict=True):
            ours, theirs = np.asarray(ours), np.asarray(theirs)
            np.testing.assert_array_equal(ours[others], theirs[others])
            assert (ours[changed] != theirs[changed]).any()


# The step


def one_step(
    policy, rollouts, objective=None, *, packed, mesh_shape=(1, 1, 1), rows=0, **batch
):
    """New parameters, critic and metrics, on the host; `rows` more than needed."""
    graphdef, parameters = policy
    plan = tiny.plan(
        graphdef, objective, mesh_shape=mesh_shape, packing=packed, **batch
    )
    state = tiny.state(parameters, plan)
    if state.reference is not None:
        nearby = jax.tree.map(lambda leaf: 0.9 * leaf, parameters)
        state = dataclasses.replace(state, reference=nearby)
    packing, _ = packing_for(plan, rollouts)
    assert (packing is not None) == packed
    if rows:
        packing = with_more_rows(packing, rows)
    rewards = tiny.rewards()
    step = jax.jit(
        functools.partial(train_step, plan=plan), compiler_options=UNOPTIMISED
    )
    state, metrics = step(state, rollouts, rewards, rewards, None, packing)
    return jax.device_get((state.parameters, state.critic, metrics))


def assert_same(found, expected, moved_from=None):
    """Parameters and metrics agree to rounding, and the policy moved."""
    for ours, theirs in zip(found[:2], expected[:2], strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert tiny.largest_difference(ours, theirs) < ROUNDING
    assert found[2].keys() == expected[2].keys()
    for name, value in found[2].items():
        np.testing.assert_allclose(
            value, expected[2][name], rtol=5e-5, atol=5e-6, err_msg=name
        )
    if moved_from is not None:
        assert tiny.largest_difference(found[0], moved_from) > 1e-4


def test_gradient_and_metrics(policy, rollouts):
    """At rate 1 the parameters move by the gradient, of norm 15."""
    run = functools.partial(one_step, policy, rollouts, optimizer=optax.sgd(1.0))
    plain = run(packed=False)
    assert_same(run(packed=True, rows=3), plain, policy[1])


@pytest.mark.slow
@pytest.mark.parametrize("kl_placement", ["loss", "reward"])
def test_minibatches_and_epochs_with_a_reference(policy, rollouts, kl_placement):
    """Old, reference and policy log-probs are packed; each minibatch has its rows."""
    objective = Objective(beta=0.1, kl_placement=kl_placement, overlong_filter=False)
    run = functools.partial(
        one_step,
        policy,
        rollouts,
        objective,
        minibatches_per_step=2,
        micro_batch_size=8,
        optimizer=optax.sgd(0.01),
    )
    assert_same(run(packed=True), run(packed=False), policy[1])


@pytest.mark.slow
@pytest.mark.parametrize("mesh_shape", [(2, 1, 1), (1, 2, 1), (1, 1, 2)])
def test_two_devices(policy, mesh_shape):
    """Rows split over devices, parameters over "fsdp" or "tensor"."""
    drawn = cut(policy, SHORT)
    run = functools.partial(one_step, policy, drawn, mesh_shape=mesh_shape)
    # A micro-batch of one prompt is split by its rows, larger ones by their prompts.
    for size in (16, 4):
        plain = run(packed=False, micro_batch_size=size)
        assert_same(run(packed=True, micro_batch_size=size), plain, policy[1])


@pytest.mark.slow
@pytest.mark.parametrize("replayed", [True, False])
def test_experts(replayed):
    """CLIP-14: routes travel with their tokens; the share of flips is the same."""
    policy = tiny_experts.policy()
    rollouts = cut(policy)
    router = policy[1]["layers"]["router"]
    noise = jax.random.normal(jax.random.key(2), router[...].shape)
    nudged = jax.tree.map(lambda leaf: leaf, policy[1])
    nudged["layers"]["router"] = router.replace(router[...] + 0.01 * noise)
    run = functools.partial(
        one_step, (policy[0], nudged), rollouts, replay_routing=replayed
    )
    plain, packed = run(packed=False), run(packed=True)
    assert_same(packed, plain, nudged)
    assert packed[2]["routing/flip_share"] > 0.001


@pytest.mark.slow
def test_critic(policy, rollouts):
    """The value model reads the same rows."""
    objective = Objective(advantage="gae", scale_rewards="none", overlong_filter=False)
    run = functools.partial(one_step, policy, rollouts, objective)
    assert_same(run(packed=True), run(packed=False), policy[1])


@pytest.mark.slow
def test_adapters(policy, rollouts):
    """LoRA: only the adapters move, and by as much."""
    decoder = nnx.merge(*policy)
    add_adapters(decoder, rank=2, alpha=4.0, seed=3)
    adapted = nnx.split(decoder)
    run = functools.partial(one_step, adapted, rollouts, optimizer=optax.sgd(1.0))
    assert_same(run(packed=True), run(packed=False), adapted[1])


def test_a_shape_compiles_once(rollouts):
    """The layout is an array: other lengths with as many rows compile nothing."""
    graphdef, parameters = bigram.policy()
    plan = tiny.plan(graphdef, packing=True)
    state = tiny.state(parameters, plan)
    step = jax.jit(
        functools.partial(train_step, plan=plan), compiler_options=UNOPTIMISED
    )
    rewards = tiny.rewards()
    others = dataclasses.replace(
        rollouts, completion_lengths=jnp.asarray(LENGTHS[::-1, ::-1])
    )
    fewer = dataclasses.replace(rollouts, completion_lengths=jnp.asarray(SHORT))
    for drawn, programs in ((rollouts, 1), (others, 1), (rollouts, 1), (fewer, 2)):
        packing, _ = packing_for(plan, drawn)
        state, _ = step(state, drawn, rewards, rewards, None, packing)
        assert step._cache_size() == programs
