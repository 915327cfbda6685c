"""Routing flips in a toy mixture of experts, and what replay does about them.

256 tokens of one row; a linear router over 8 experts, each expert a table of logits
over 12 tokens. The update moves every router weight by about 1e-3 and nothing else.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import ratios, routing

pytestmark = pytest.mark.usefixtures("x64")

TOKENS, WIDTH, EXPERTS, VOCAB = 256, 16, 8, 12
RNG = np.random.default_rng(0)
HIDDEN = RNG.normal(size=(1, TOKENS, WIDTH))
ROUTER = RNG.normal(size=(WIDTH, EXPERTS))
EXPERT = RNG.normal(size=(EXPERTS, WIDTH, VOCAB))
NUDGED = ROUTER + 1e-3 * RNG.normal(size=(WIDTH, EXPERTS))
IDS = RNG.integers(0, VOCAB, (1, TOKENS))
MASK = np.ones((1, TOKENS))


def router_logits(router):
    return jnp.asarray(HIDDEN @ router)


def model(router, replayed=None):
    """Log-probs of IDS and the experts used, one of eight per token."""
    ids, gates = routing.route(
        router_logits(router), experts_per_token=1, replayed=replayed
    )
    outputs = jnp.einsum("btd,edv->btev", HIDDEN, EXPERT)
    mixed = (jnp.take_along_axis(outputs, ids[..., None], 2) * gates[..., None]).sum(2)
    logprobs = jax.nn.log_softmax(mixed)
    return jnp.take_along_axis(logprobs, jnp.asarray(IDS)[..., None], -1)[..., 0], ids


def test_a_small_nudge_flips_an_expert_and_the_token_ratio_jumps():
    """CLIP-13: some tokens change their expert; their ratio leaves any clip.

    Noise of std 1e-3 |h| = .004 on each logit, against gaps between the two best of
    order |h| / 2: of 256 tokens a handful flips. The row's ratio moves by the mean of
    the jumps: 1/T of each.
    """
    before, chosen = model(ROUTER)
    after, now = model(NUDGED)
    flipped = np.asarray((chosen != now)[0, :, 0])
    share = routing.routing_flips(now, chosen, jnp.asarray(MASK)).value()
    np.testing.assert_allclose(share, flipped.mean())
    assert 1 <= flipped.sum() <= 10
    log_ratio = ratios.token_log_ratio(after, before, jnp.asarray(MASK))
    # Experts do not move: where none is flipped the ratio is exactly 1.
    np.testing.assert_array_equal(log_ratio[0, ~flipped], 0)
    jumps = np.asarray(log_ratio[0, flipped])
    assert np.abs(jumps).max() > 1.0
    row = float(ratios.sequence_log_ratio(log_ratio, jnp.asarray(MASK))[0, 0])
    np.testing.assert_allclose(row, jumps.sum() / TOKENS, rtol=1e-12)
    assert abs(row) < np.abs(jumps).max() / 50


def test_replay_keeps_the_ratio_at_one():
    """CLIP-14: with the rollout's expert ids the nudge no longer shows.

    One expert per token has gate 1 whatever its logit, so nothing is left at all.
    """
    before, chosen = model(ROUTER)
    after, used = model(NUDGED, replayed=chosen)
    np.testing.assert_array_equal(used, chosen)
    np.testing.assert_array_equal(after, before)


def test_two_experts_with_replay_move_as_their_gates_do():
    """CLIP-14: of two replayed experts the shares move with the router, by ~1e-3."""
    logits = router_logits(ROUTER)
    ids, gates = routing.route(logits, experts_per_token=2)
    again, new = routing.route(router_logits(NUDGED), experts_per_token=2, replayed=ids)
    np.testing.assert_array_equal(again, ids)
    np.testing.assert_allclose(gates.sum(-1), 1, rtol=1e-12)
    assert 0 < np.abs(new - gates).max() < 0.01
    # Shares have a gradient, also under replay.
    slope = jax.grad(
        lambda x: routing.route(x, experts_per_token=2, replayed=ids)[1][..., 0].sum()
    )(logits)
    assert np.abs(slope).max() > 0.1


def test_flips_do_not_depend_on_the_order_and_leave_padding_out():
    ids = jnp.array([[[0, 1], [2, 3], [4, 5]]])
    other = jnp.array([[[1, 0], [3, 7], [6, 7]]])
    share = routing.routing_flips(ids, other, jnp.array([[1, 1, 0]]))
    np.testing.assert_array_equal(share.numerator, 1)
    np.testing.assert_array_equal(share.denominator, 4)
    empty = routing.routing_flips(ids, other, jnp.zeros((1, 3)))
    assert float(empty.value()) == 0
