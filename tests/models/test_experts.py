"""Experts against all experts of all tokens; routes reported and replayed."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.mesh.sharding import parameter_shardings
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.models.experts import expert_mlp
from rlvr_jax.models.hf_config import architecture_from_config
from rlvr_jax.models.parameters import parameter_shapes
from tests import tiny_experts

WIDTH, INNER, EXPERTS = 5, 7, 6
RNG = np.random.default_rng(0)
WEIGHTS = {
    "gate": RNG.normal(size=(EXPERTS, WIDTH, INNER)),
    "up": RNG.normal(size=(EXPERTS, WIDTH, INNER)),
    "down": RNG.normal(size=(EXPERTS, INNER, WIDTH)),
}


def every_expert(hidden, ids, gates, gate, up, down):
    """The formula of the docstring: all experts of all tokens, then those wanted."""
    inner = jax.nn.silu(jnp.einsum("nd,edf->nef", hidden, gate))
    inner *= jnp.einsum("nd,edf->nef", hidden, up)
    outputs = jnp.einsum("nef,efd->ned", inner, down)
    share = (jax.nn.one_hot(ids, EXPERTS) * gates[..., None]).sum(axis=1)
    return jnp.einsum("ne,ned->nd", share, outputs)


ROUTINGS = {
    # One pair per block; a token's row may come twice from one expert.
    "fewer pairs than experts": np.array([[0, 5], [3, 3]]),
    "spread": np.stack([np.roll(np.arange(EXPERTS), n)[:2] for n in range(30)]),
    # 60 pairs of two experts: six blocks of ten, and as many that nobody needs.
    "all on two": np.tile([2, 4], (30, 1)),
    "random": RNG.integers(0, EXPERTS, (23, 3)),
    "one token": np.array([[1, 4]]),
}


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ROUTINGS)
def test_equals_all_experts_of_all_tokens(name):
    """Values and all gradients, in float64."""
    ids = ROUTINGS[name]
    hidden = jnp.asarray(np.random.default_rng(1).normal(size=(len(ids), WIDTH)))
    gates = jnp.asarray(np.random.default_rng(2).random(ids.shape))

    def total(function):
        def loss(hidden, gates, weights):
            found = function(hidden, jnp.asarray(ids), gates, **weights)
            return (found * jnp.arange(1.0, WIDTH + 1)).sum(), found

        return jax.grad(loss, argnums=(0, 1, 2), has_aux=True)(
            hidden, gates, jax.tree.map(jnp.asarray, WEIGHTS)
        )

    expected, found = total(every_expert), total(expert_mlp)
    for ours, theirs in zip(
        jax.tree.leaves(found), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.fixture(scope="module")
def decoder():
    return nnx.merge(*tiny_experts.policy())


def test_replayed_routes_are_those_that_are_used(decoder):
    """The routes that prefill and read report, forced, change nothing; others do."""
    tokens, lengths = tiny_experts.prompts()
    answers = jax.random.randint(jax.random.key(1), (tokens.shape[0], 2, 5), 0, 61)

    @nnx.jit
    def chosen(decoder):
        hidden, prompts = decoder.prefill(tokens, lengths)
        states, cache = decoder.read(answers, prompts)
        return (hidden[:, -1], states), prompts.routes, cache.routes

    @nnx.jit
    def run(decoder, of_prompts=None, of_answers=None):
        *states, picked = decoder.forward(
            tokens, lengths, answers, prompt_routes=of_prompts, routes=of_answers
        )
        return states, picked

    expected, of_prompts, of_answers = chosen(decoder)
    states, picked = run(decoder)
    for ours, theirs in zip(states, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(picked, of_answers)
    assert of_prompts.dtype == jnp.uint8
    assert of_prompts.shape == (2, *tokens.shape, 2)
    assert of_answers.shape == (2, *answers.shape, 2)
    again, picked = run(decoder, of_prompts, of_answers)
    jax.tree.map(np.testing.assert_array_equal, again, states)
    np.testing.assert_array_equal(picked, of_answers)
    other = (of_answers + 1) % tiny_experts.EXPERTS
    moved, picked = run(decoder, of_prompts, other)
    assert np.abs(moved[1] - states[1]).max() > 0.01
    # The prompt's tokens follow theirs, which shows in the last of them and beyond.
    elsewhere, _ = run(decoder, (of_prompts + 1) % tiny_experts.EXPERTS, of_answers)
    for ours, before in zip(elsewhere, states, strict=True):
        assert np.abs(ours - before).max() > 0.01
    # The first layer's routers have seen the same tokens, whatever was forced there...
    np.testing.assert_array_equal(picked[0], of_answers[0])
    # ... and what they would pick is reported, not what was forced.
    assert (picked[0] != other[0]).any()


def test_count_of_parameters():
    arch = tiny_experts.ARCHITECTURE
    shapes = parameter_shapes(arch)
    assert arch.num_parameters == sum(int(np.prod(s)) for s in shapes.values())
    assert shapes["layers.expert_down"] == (2, 4, 24, 32)


def test_experts_are_split_over_the_mesh(decoder):
    """Widths over fsdp and tensor, as a plain MLP; the logits stay the same."""
    mesh = make_mesh((2, 2, 2), jax.devices()[:8])
    graphdef, parameters = nnx.split(decoder)
    shardings = parameter_shardings(parameters, mesh)
    split = jax.device_put(parameters, shardings)
    found = split["layers"]["expert_down"][...].sharding.spec
    assert tuple(found) == (None, None, "tensor", "fsdp")
    run = jax.jit(
        lambda state: nnx.merge(graphdef, state).prefill(*tiny_experts.prompts())[0]
    )
    # float32 sums in another order, over states of order 1.
    np.testing.assert_allclose(run(split), run(parameters), atol=2e-5)


SETTINGS = {
    "model_type": "qwen3_moe",
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mlp_only_layers": [0]}, r"mlp_only_layers=\[0\]"),
        ({"decoder_sparse_step": 2}, "decoder_sparse_step=2"),
        ({"num_experts": 4}, "num_experts=4 must be at least num_experts_per_tok=8"),
    ],
)
def test_mixtures_that_the_decoder_does_not_compute(changes, said):
    with pytest.raises(ValueError, match=said):
        architecture_from_config(SETTINGS | changes, source="config.json")


@pytest.mark.parametrize("key", ["num_experts", "num_local_experts"])
def test_settings_that_are_left_out(key):
    """Defaults of transformers; version 5 has a new name for the count of experts."""
    found = architecture_from_config(SETTINGS | {key: 16}, source="config.json")
    assert dataclasses.astuple(found)[-5:] == (16, 8, 768, False, "qwen3_moe")
    assert (found.head_dim, found.qk_norm) == (8, True)


def test_a_new_decoder_draws_experts_by_their_inputs():
    """Std 1/sqrt(inputs): 32 of the gates, 24 of the outputs."""
    made = Decoder(tiny_experts.ARCHITECTURE, rngs=nnx.Rngs(3))
    for name, inputs in (("router", 32), ("expert_gate", 32), ("expert_down", 24)):
        # Over 256 numbers or more the std is off by 4 % of itself.
        spread = float(made.layers[name][...].std())
        np.testing.assert_allclose(spread, inputs**-0.5, rtol=0.15)
