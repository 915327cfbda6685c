"""FLOPs counted by hand against those that XLA counts in the programs themselves."""

import dataclasses
import functools

import jax
import pytest

from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.planning import flops
from rlvr_jax.planning.abstract_run import abstract_run
from rlvr_jax.planning.programs import lower
from rlvr_jax.planning.work import work_of
from tests.planning import small

scan = jax.lax.scan


def counted(config, layers: int, program: str) -> float:
    """XLA's count for a program with every loop written out."""
    architecture = small.of_depth(layers)
    mesh = make_mesh((1, 1, 1), jax.devices()[:1])
    lowered = lower(abstract_run(config, architecture, mesh), program)
    return lowered.cost_analysis()["flops"]


@pytest.fixture
def unrolled(monkeypatch):
    """XLA counts the body of a loop once: there are none."""
    monkeypatch.setattr(jax.lax, "scan", functools.partial(scan, unroll=True))


@pytest.mark.parametrize("remat", ["layer", "dots", "none", "groups"])
def test_the_train_step_against_xla(unrolled, remat):
    """REC-36: what two layers more take, 4 layers less 2. XLA also counts what is no
    matrix product (norms, softmax, rotations): up to 6 % here, less in wider models."""
    config = small.recipe(micro_batch_size=4)
    config.model.remat = remat
    found = counted(config, 4, "train") - counted(config, 2, "train")
    ours = [flops.train_flops(work_of(config, small.of_depth(n))) for n in (4, 2)]
    assert 1.0 <= found / (ours[0] - ours[1]) < 1.06


def test_prefill_against_xla(unrolled):
    config = small.recipe()
    found = counted(config, 4, "prefill") - counted(config, 2, "prefill")
    ours = [
        flops.step_flops(work_of(config, small.of_depth(n))).prefill for n in (4, 2)
    ]
    assert 1.0 <= found / (ours[0] - ours[1]) < 1.06


def test_a_step_by_hand():
    """2 per weight and token; 4 per head number, query and slot."""
    arch = small.ARCHITECTURE
    # Queries and outputs 256 x 256, keys and values 256 x 128, three of 256 x 512.
    weights = 2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512
    assert flops.layer_flops(arch) == 2 * weights
    found = flops.step_flops(work_of(small.recipe(), arch))
    tokens = 4 * 2 * 65
    pairs = 2 * 4 * 256 * (64 + 65)
    assert found.decode == tokens * (2 * 2 * weights + 2 * 256 * 256 + pairs)
    assert found.prefill == 2 * 256 * (2 * weights + 4 * 256 * 64)
    assert found.forward == 0
    assert found.total == found.prefill + found.decode + found.train


def test_kernels_of_a_pod_by_hand():
    """Splash: half of a row's own pairs, once forward, once more for the layer, 3.5
    times backward (7 products for 2). The fused head: 5 products for the chunks' 4."""
    arch, config = small.ARCHITECTURE, small.recipe()
    plain, pod = work_of(config, arch), work_of(config, arch, {"tensor": 1})
    assert plain.why_dense == plain.why_chunked == "the devices are no TPUs"
    assert pod.why_dense == pod.why_chunked == ""
    own, shared = 8 * 64 * 64 + 4 * 64 * 64, 8 * 64 * 64
    pair = 2 * flops.pair_flops(arch)
    head = 8 * 65 * flops.head_flops(arch)
    less = 4 * (own + shared) - 5.5 * (own / 2 + shared)
    found = flops.train_flops(plain) - flops.train_flops(pod)
    assert found == pytest.approx(less * pair - head)


def test_passes_without_a_gradient_are_counted():
    """Several updates need the old policy's log-probs; a KL term the reference's."""
    arch = small.ARCHITECTURE
    once = sum(flops.forward_flops(arch, 4, 8, 64, 65))
    config = small.recipe(minibatches_per_step=2)
    assert flops.step_flops(work_of(config, arch)).forward == once
    config.objective.beta = 0.1
    assert flops.step_flops(work_of(config, arch)).forward == 2 * once


def test_passes_of_a_value_model_and_of_a_selection_are_counted():
    """VAPO's value model reads the batch once and learns beside the policy; Clip-Cov
    looks at each minibatch before its update. By hand: a pass without a gradient
    each, and the policy's passes once more without the head."""
    arch, config = small.ARCHITECTURE, small.recipe()
    plain = flops.step_flops(work_of(config, arch))
    layers, attention, head = flops.forward_flops(arch, 4, 8, 64, 65)
    config.objective.surrogate = "clip_cov"
    chosen = flops.step_flops(work_of(config, arch))
    assert chosen.forward == layers + attention + head
    assert chosen.train == plain.train
    config.objective.surrogate = "clip"
    config.objective.advantage, config.critic.updates_per_minibatch = "gae", 2
    work = work_of(config, arch)
    valued = flops.step_flops(work)
    assert valued.forward == layers + attention
    assert valued.train == 3 * plain.train - 2 * 4 * head
    assert valued.useful > plain.useful


def test_a_token_goes_through_its_experts_alone():
    """Two of eight experts of 128 and a router; computed are at most twice as many
    rows, as the blocks of experts are filled up."""
    arch = dataclasses.replace(
        small.ARCHITECTURE,
        num_experts=8,
        num_experts_per_token=2,
        moe_intermediate_size=128,
    )
    attention = 2 * 256 * 256 + 2 * 256 * 128
    needed = 2 * (attention + 256 * 8 + 2 * 3 * 256 * 128)
    assert flops.layer_flops(arch, useful=True) == needed
    assert flops.layer_flops(arch) == needed + 2 * 2 * 3 * 256 * 128
