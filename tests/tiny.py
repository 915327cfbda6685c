"""A tiny policy with rollouts, for tests of what lies above `core`."""

import dataclasses

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from rlvr_jax.config import BatchConfig, CriticConfig, Objective
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.rollout.sampler import Sampling, row_keys, sample
from rlvr_jax.train.policy import new_state
from rlvr_jax.train.state import StepPlan, TrainState
from rlvr_jax.types import Rollouts

VOCAB, PROMPTS, GENERATIONS, SLOTS, LENGTH = 61, 8, 4, 6, 7
END_IDS = (1, 2, 3, 4)
ARCHITECTURE = Architecture(
    vocab_size=VOCAB,
    hidden_size=32,
    intermediate_size=48,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
)


def policy(seed: int = 0, **changes) -> tuple[nnx.GraphDef, nnx.State]:
    """A new decoder, split; a head ten times larger makes it less uniform."""
    architecture = dataclasses.replace(ARCHITECTURE, **changes)
    decoder = Decoder(architecture, rngs=nnx.Rngs(seed))
    decoder.embedding[...] = decoder.embedding[...] * 4
    return nnx.split(decoder)


def prompts(count: int = PROMPTS):
    """Left-padded prompts of 1 to SLOTS tokens."""
    tokens = jax.random.randint(jax.random.key(5), (count, SLOTS), 5, VOCAB)
    return tokens, 1 + jnp.arange(count) % SLOTS


def rollouts(
    graphdef,
    parameters,
    *,
    generations=GENERATIONS,
    length=LENGTH,
    seed=0,
    **sampling,
) -> Rollouts:
    """Completions sampled by the policy; about half of them end before the limit."""
    tokens, lengths = prompts()
    keys = row_keys(seed, 0, jnp.arange(PROMPTS), generations)
    settings = Sampling(generations, length, END_IDS, **sampling)
    return sample(graphdef, parameters, tokens, lengths, keys, sampling=settings)


def rewards(generations: int = GENERATIONS):
    """0/1 rewards; some groups are unanimous."""
    drawn = jax.random.bernoulli(jax.random.key(3), 0.4, (PROMPTS, generations))
    return drawn.astype(jnp.float32).at[2].set(1.0)


def plan(
    graphdef,
    objective: Objective | None = None,
    *,
    mesh_shape=(1, 1, 1),
    optimizer=None,
    temperature=1.0,
    replay_routing=True,
    **batch,
) -> StepPlan:
    """A plan; plain SGD by default, which does not amplify rounding as Adam does."""
    count = mesh_shape[0] * mesh_shape[1] * mesh_shape[2]
    settings = {"prompts_per_step": PROMPTS, "logprob_chunk_tokens": 64} | batch
    critic = {}
    if objective is not None and objective.advantage == "gae":
        critic = {"critic": CriticConfig(), "critic_optimizer": optax.sgd(0.1)}
    return StepPlan(
        graphdef=graphdef,
        optimizer=optimizer or optax.sgd(0.1),
        objective=objective or Objective(),
        batch=BatchConfig(**settings),
        max_completion_tokens=LENGTH,
        temperature=temperature,
        mesh=make_mesh(mesh_shape, jax.devices()[:count]),
        dtype=jnp.dtype("float32"),
        replay_routing=replay_routing,
        **critic,
    )


def state(parameters, plan: StepPlan, reference=None) -> TrainState:
    """The state before the first step; `reference` replaces a copy of the policy."""
    state = new_state(parameters, plan, num_problems=PROMPTS)
    if reference is None:
        return state
    return dataclasses.replace(state, reference=reference)


def largest_difference(left, right) -> float:
    """Over all leaves of two trees."""
    gaps = jax.tree.map(lambda a, b: jnp.abs(a - b).max(), left, right)
    return float(jnp.stack(jax.tree.leaves(gaps)).max())
