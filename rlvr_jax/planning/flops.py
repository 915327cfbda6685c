"""Floating-point operations of a step, counted by hand.

A matrix product of [m, k] and [k, n] is 2 m k n. Counted is what the programs compute:
dense attention over every slot, kept or masked, and what is computed again in the
backward pass; `useful` leaves both out and is what utilisation is usually quoted
against.
XLA's own count agrees (tests/planning/test_flops.py), but takes a scan's body once.
"""

import dataclasses

from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.attention import QUERY_BLOCK
from rlvr_jax.planning.work import Work


@dataclasses.dataclass(frozen=True)
class StepFlops:
    """FLOPs of a step, over all devices."""

    prefill: float
    decode: float
    """At the limit of completion tokens."""
    forward: float
    """Passes without a gradient: old policy, reference, selection, values."""
    train: float
    useful: float
    """Of sampling and training, without masked slots and recomputation."""

    @property
    def total(self) -> float:
        """What is computed."""
        return self.prefill + self.decode + self.forward + self.train


def mlp_width(arch: Architecture, *, useful: bool = False) -> int:
    """Of what a token goes through: the MLP, or its experts side by side.

    Blocks of experts are filled up, to at most twice the pairs of token and expert
    (models/experts.py); `useful` leaves that out.
    """
    if not arch.num_experts:
        return arch.intermediate_size
    blocks = 1 if useful else 2
    return blocks * arch.num_experts_per_token * arch.moe_intermediate_size


def layer_flops(arch: Architecture, *, useful: bool = False) -> float:
    """Of the weights of one layer, per token; `useful` as in `mlp_width`."""
    heads, kv_heads = arch.num_heads * arch.head_dim, arch.num_kv_heads * arch.head_dim
    inner = 3 * mlp_width(arch, useful=useful) + arch.num_experts
    return 2.0 * arch.hidden_size * (2 * heads + 2 * kv_heads + inner)


def pair_flops(arch: Architecture) -> float:
    """Of attention in one layer, per query and slot: scores, and their use."""
    return 4.0 * arch.num_heads * arch.head_dim


def head_flops(arch: Architecture) -> float:
    """Of the LM head, per position."""
    return 2.0 * arch.vocab_size * arch.hidden_size


def forward_flops(
    arch: Architecture,
    prompts: int,
    rows: int,
    slots: int,
    length: int,
    *,
    causal: bool = False,
):
    """(layers without attention, attention, head) of prompts and their completions.

    Args:
      arch: of the decoder.
      prompts: computed once for the completions of each.
      rows: completions.
      slots: tokens of a prompt.
      length: tokens of a completion; the last one predicts nothing.
      causal: slots that come later are not computed.
    """
    read = length - 1
    tokens = prompts * slots + rows * read
    own = 2 if causal else 1
    pairs = prompts * slots**2 / own + rows * read * (read / own + slots)
    return (
        arch.num_layers * tokens * layer_flops(arch),
        arch.num_layers * pairs * pair_flops(arch),
        rows * length * head_flops(arch),
    )


def train_flops(work: Work, *, with_head: bool = True) -> float:
    """One pass forward and backward over all rows of a step.

    The value model's passes have no head to speak of: `with_head=False`.

    A backward pass is two forward ones. Under remat="layer" layers are computed once
    more, but for their last product, whose result nothing reads, and under "groups" a
    second time in whole; under "dots" only attention is. It is computed again anyhow
    where it goes block by block, and so are the head's chunks. The splash kernel leaves
    out tiles that causality hides, and its backward pass makes the scores twice, in
    seven products for the forward pass's two;
    that of the fused head makes the logits twice, in four products for one.
    """
    arch, (per_micro, generations) = work.architecture, work.micro
    micros = work.rows // (per_micro * generations)
    linear, attention, head = forward_flops(
        arch,
        micros * per_micro,
        work.rows,
        work.slots,
        work.length,
        causal=not work.why_dense,
    )
    last = 2.0 * arch.hidden_size * mlp_width(arch) / layer_flops(arch)
    # Of the forward pass: how often layers, and attention's scores, are repeated.
    again = {"layer": 1.0 - last, "groups": 2.0 - last}.get(work.remat, 0.0)
    scores_again = {"none": 0, "groups": 2}.get(work.remat, 1)
    blocks = int(work.length - 1 > QUERY_BLOCK)
    attended = (3 + scores_again + blocks) * attention
    if not work.why_dense:
        attended = (1 + scores_again + 3.5) * attention
    head_passes = 4 if work.why_chunked else 5
    # Frozen weights beside adapters need no gradient of their own.
    passes = 2 if work.adapters else 3
    return (passes + again) * linear + attended + with_head * head_passes * head


def step_flops(work: Work) -> StepFlops:
    """Of a whole step at the limit of tokens."""
    arch, rows, length = work.architecture, work.rows, work.length
    layers = arch.num_layers
    prefill = sum(
        forward_flops(arch, work.prompts, 0, work.slots, 0, causal=not work.why_dense)
    )
    per_token = layers * layer_flops(arch) + head_flops(arch)
    # A step of decoding reads the whole cache, written or not.
    pairs = layers * (work.slots + length) * pair_flops(arch)
    decode = work.tokens * (per_token + pairs)
    per_micro = work.micro[0] * work.micro[1]
    micro_prompts = work.rows // per_micro * work.micro[0]
    splash = not work.why_dense
    linear, attention, head = forward_flops(
        arch, micro_prompts, rows, work.slots, length, causal=splash
    )
    epochs, critic = work.epochs, work.critic_updates
    policy_passes = work.extra_forwards + epochs * work.selection
    mean_pairs = layers * (work.slots + length / 2) * pair_flops(arch)
    in_layers = work.tokens * (layers * layer_flops(arch, useful=True) + mean_pairs)
    in_head = work.tokens * head_flops(arch)
    # Sampling, passes without a gradient, and three for an update.
    useful = (1 + policy_passes + 3 * epochs) * (in_layers + in_head)
    forward = policy_passes * (linear + attention + head)
    train = epochs * train_flops(work)
    if critic:  # values of the batch, then the value model's own updates
        useful += (1 + 3 * epochs * critic) * in_layers
        forward += linear + attention
        train += epochs * critic * train_flops(work, with_head=False)
    return StepFlops(prefill, decode, forward, train, useful)
