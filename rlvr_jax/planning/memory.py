"""High-bandwidth memory of one device, part by part, without compiling anything.

The estimate behind `--search` and behind plans without libtpu. A compiled program
reuses buffers and pads arrays, so its figure differs; plans print both.
"""

import math
from collections.abc import Sequence

from jax.sharding import AbstractMesh, Mesh

from rlvr_jax.mesh.mesh import prompts_per_device, row_devices
from rlvr_jax.models.attention import QUERY_BLOCK
from rlvr_jax.models.decoder import layers_per_group
from rlvr_jax.planning.flops import mlp_width
from rlvr_jax.planning.work import Work

Parts = dict[str, float]
"""Name -> bytes of one device."""


def train_parts(
    work: Work, mesh: Mesh | AbstractMesh, width: int, weights: float
) -> Parts:
    """Of the train step.

    Args:
      work: of a step.
      mesh: sizes of its axes.
      width: bytes of an activation.
      weights: numbers of the parameters that one device holds.
    """
    arch, tensor = work.architecture, mesh.shape["tensor"]
    rows, prompts = micro_per_device(work, mesh)
    tokens = rows * work.length + prompts * work.slots
    inner = (3 * mlp_width(arch) + 2 * arch.num_heads * arch.head_dim) / tensor
    layer = tokens * (inner + 4 * arch.hidden_size) * width
    scores = _scores(work, rows, work.length, work.length + work.slots, tensor)
    layers, size = arch.num_layers, layers_per_group(arch.num_layers)
    inputs = tokens * arch.hidden_size * width
    kept = {
        "layer": layers * inputs,
        "groups": (layers // size + size) * inputs,
        "dots": layers * layer,
        "none": layers * (layer + scores),
    }[work.remat]
    held, trained = weights + work.adapters, work.adapters or weights
    critic = {}
    if work.critic_updates:
        critic = {"critic": (4 + work.moment_bytes + 8) * held}
    return critic | {
        "parameters": 4 * held * work.copies,
        "optimizer": work.moment_bytes * trained,
        # Those of a micro-batch, and the sum that they are added to if there are more.
        "gradients": (8 if work.micros_per_update > 1 else 4) * trained,
        "weights in the type they compute with": width * weights,
        # Beside what layers keep, one layer is being worked on.
        "activations": kept + layer + scores,
        **_head(work, mesh, rows, width),
        "one layer's weights, whole": 2 * width * _layer(work) / tensor,
    }


def under_way(work: Work, mesh: Mesh | AbstractMesh, weights: float) -> Parts:
    """Of batches that are sampled beside the update, with rollout.staleness.

    Args:
      work: of a step.
      mesh: sizes of the axes that sampling is laid out over.
      weights: numbers of the sampler's weights that one device holds.
    """
    if not work.behaviours:
        return {}
    policies = work.behaviours * work.weight_bytes * (weights + work.adapters)
    if work.engine != "slots":
        return {"policies under way": policies}
    # The caches of the engine stay between its calls; others are within a program.
    return {"policies under way": policies, "slots under way": _cache(work, mesh)}


def resident(work: Work, weights: float, sampled: float) -> float:
    """Bytes of the training state while completions are sampled.

    Args:
      work: of a step.
      weights: numbers of the parameters that one device holds for training.
      sampled: those that it holds for sampling: of policies under way.
    """
    held, trained = weights + work.adapters, work.adapters or weights
    copies = work.copies + bool(work.critic_updates)
    moments = trained + (held if work.critic_updates else 0)
    policies = work.behaviours * work.weight_bytes * (sampled + work.adapters)
    return 4 * copies * held + work.moment_bytes * moments + policies


def reshard_parts(waiting: float, sent: float, received: Sequence[float]) -> Parts:
    """Of making the sampler's weights from the parameters, all of the state included.

    Args:
      waiting: bytes of the training state.
      sent: of the parameters in the sampler's type, as a device has them to send; 0
        where it keeps what it has.
      received: of each parameter as a device samples with it.
    """
    weights = sum(received)
    # Twice what a device sends or receives, or two of the largest as they arrive.
    moving = max(2 * min(sent, weights), 2 * max(received)) if sent else 0.0
    return {"training state": waiting, "weights": weights, "on their way": moving}


def decode_parts(
    work: Work, mesh: Mesh | AbstractMesh, width: int, weights: float, waiting: float
) -> Parts:
    """Of sampling, the training state that waits meanwhile included.

    Args:
      work: of a step.
      mesh: sizes of the axes that sampling is laid out over.
      width: bytes of an activation.
      weights: numbers of the sampler's weights that one device holds.
      waiting: `resident` bytes.
    """
    arch, tensor = work.architecture, mesh.shape["tensor"]
    _, rows = decoding_per_device(work, mesh)
    return {
        "training state": waiting,
        "weights": width * weights,
        "cache": _cache(work, mesh),
        "logits": 5 * rows * arch.vocab_size * 4 / tensor,
        "one layer's weights, whole": 2 * width * _layer(work) / tensor,
    }


def prefill_parts(
    work: Work, mesh: Mesh | AbstractMesh, width: int, weights: float, waiting: float
) -> Parts:
    """Of reading the prompts, the training state included; as `decode_parts`."""
    arch, tensor = work.architecture, mesh.shape["tensor"]
    prompts = prefilled_per_device(work, mesh)
    inner = (3 * mlp_width(arch) + 2 * arch.num_heads * arch.head_dim) / tensor
    scores = _scores(work, prompts, work.slots, work.slots, tensor)
    return {
        "training state": waiting,
        "weights": width * weights,
        "cache": prompts * work.slots * _per_slot(work, mesh),
        "activations": prompts * work.slots * (inner + 4 * arch.hidden_size) * width
        + scores,
        "one layer's weights, whole": 2 * width * _layer(work) / tensor,
    }


def _cache(work: Work, mesh: Mesh | AbstractMesh) -> float:
    """Of keys and values while completions decode."""
    prompts, rows = decoding_per_device(work, mesh)
    return (prompts * work.slots + rows * work.length) * _per_slot(work, mesh)


def _per_slot(work: Work, mesh: Mesh | AbstractMesh) -> float:
    """Of the keys and values of one token."""
    arch, tensor = work.architecture, mesh.shape["tensor"]
    heads = math.ceil(arch.num_kv_heads / tensor)
    return 2.0 * arch.num_layers * heads * arch.head_dim * work.weight_bytes


def micro_per_device(work: Work, mesh: Mesh | AbstractMesh) -> tuple[int, int]:
    """Completions and prompts of a micro-batch that a device reads in training."""
    rows = math.ceil(work.micro[0] * work.micro[1] / row_devices(mesh))
    return rows, prompts_per_device(mesh, work.micro)


def prefilled_per_device(work: Work, mesh: Mesh | AbstractMesh) -> int:
    """Prompts that a device reads at the same time, to sample from them."""
    if work.engine == "slots":
        return work.at_once  # every device has all of the slots, split by heads alone
    return math.ceil(work.at_once / row_devices(mesh))


def decoding_per_device(work: Work, mesh: Mesh | AbstractMesh) -> tuple[float, float]:
    """Prompts and completions that a device has caches of while they decode."""
    if work.engine == "slots":
        # A slot has its prompt to itself, and every device has all of the slots: they
        # are split by heads alone.
        return float(work.decoding), float(work.decoding)
    prompts = work.at_once / row_devices(mesh)
    return prompts, prompts * work.generations


def _scores(work: Work, rows: int, queries: int, slots: int, tensor: int) -> float:
    """Of attention: scores of a block of queries, or what the kernel keeps of them."""
    heads = rows * math.ceil(work.architecture.num_heads / tensor)
    if work.why_dense:
        return 4.0 * 3 * heads * min(QUERY_BLOCK, queries) * slots
    # A log-sum-exp of each query, in all 128 lanes.
    return 4.0 * 128 * heads * queries


def _head(work: Work, mesh: Mesh | AbstractMesh, rows: int, width: int) -> Parts:
    """Of log-probs: the logits of a chunk, or the head that the kernel reads."""
    arch, tensor = work.architecture, mesh.shape["tensor"]
    if not work.why_chunked:
        whole = arch.vocab_size * arch.hidden_size / tensor
        return {"LM head, whole, and its gradient": 2 * width * whole}
    # A chunk is so many positions of all rows together.
    positions = max(work.chunk_tokens, rows) / row_devices(mesh)
    return {"logits": 4 * positions * arch.vocab_size * 4 / tensor}


def _layer(work: Work) -> float:
    """Numbers of one layer's parameters."""
    arch = work.architecture
    heads = (arch.num_heads + arch.num_kv_heads) * arch.head_dim
    mlp = 3 * arch.intermediate_size
    if arch.num_experts:
        mlp = arch.num_experts * (3 * arch.moe_intermediate_size + 1)
    return float(arch.hidden_size * (2 * heads + mlp))
