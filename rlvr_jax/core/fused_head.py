"""Token log-probs and entropies by the TPU kernels, on one device or a mesh of them."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Int

from rlvr_jax.core.head_kernel import head_backward, head_forward


@dataclasses.dataclass(frozen=True)
class HeadKernel:
    """How the kernels run; hashable, so that a jitted function can take it."""

    mesh: Mesh | None = None
    """Devices of the arrays; None: one."""
    row_axes: tuple[str, ...] = ()
    """Of the mesh, that split rows B; their sizes together divide B."""
    vocabulary_axis: str | None = None
    """Of the mesh, that splits V, and divides it."""
    tiles: tuple[int, int] | None = None
    """Positions and words computed at once; None for what fast memory holds."""
    interpret: bool = False
    """Run on any device, slowly: for tests."""


def fused_logprobs(
    hidden: Float[Array, "B T D"],
    head: Float[Array, "V D"],
    tokens: Int[Array, "B T"],
    *,
    temperature: float,
    kernel: HeadKernel,
) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
    r"""`token_logprobs` in one pass over tiles of the vocabulary.

    With z = hidden head^T / temperature, L = log sum exp z and p = exp(z - L):

        log p_t = z_t - L,    H = L - sum_j p_j z_j

    Each device takes its rows and its part of the vocabulary, from which come L_k, H_k
    of K parts; with w_k = exp(L_k - L), H = sum_k w_k (H_k + L - L_k).

    Args:
      hidden: states, float32 or bfloat16.
      head: the LM head. Of a mesh, each device gathers its rows of it whole.
      tokens: ids; one outside of [0, V) has a finite log-prob of no meaning.
      temperature: a Python number.
      kernel: how and where to run.

    Returns:
      float32 log-probs and entropies, in nats, differentiable once. The products of the
      backward pass take logits' gradients in the type of `hidden` and `head`; sums are
      float32.
    """
    return _fused(hidden, head, tokens, float(temperature), kernel)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _fused(hidden, head, tokens, temperature, kernel):
    return _forward(hidden, head, tokens, temperature, kernel)[0]


def _forward(hidden, head, tokens, temperature, kernel: HeadKernel):
    axis = kernel.vocabulary_axis

    def part(hidden, head, tokens):
        chosen, total, entropy = head_forward(
            hidden.reshape(-1, hidden.shape[-1]),
            head,
            _own(tokens, head, axis).reshape(-1),
            temperature=temperature,
            tiles=kernel.tiles,
            interpret=kernel.interpret,
        )
        if axis is not None:
            chosen = jax.lax.psum(chosen, axis)
            peak = jax.lax.pmax(total, axis)
            whole = peak + jnp.log(jax.lax.psum(jnp.exp(total - peak), axis))
            share = jnp.exp(total - whole)
            entropy = jax.lax.psum(share * (entropy + whole - total), axis)
            total = whole
        found = (chosen - total, entropy, total)
        return tuple(array.reshape(tokens.shape) for array in found)

    rows, words = _specs(kernel)
    logprobs, entropies, totals = _on_mesh(
        part, kernel, (rows, words, rows), (rows,) * 3
    )(hidden, head, tokens)
    return (logprobs, entropies), (hidden, head, tokens, totals, entropies)


def _backward(temperature, kernel: HeadKernel, kept, cotangents):
    hidden, head, tokens, totals, entropies = kept
    axis = kernel.vocabulary_axis
    scattered = _scattered_axis(kernel, head.shape[-1])

    def part(hidden, head, tokens, *per_row):
        by_hidden, by_head = head_backward(
            hidden.reshape(-1, hidden.shape[-1]),
            head,
            _own(tokens, head, axis).reshape(-1),
            jnp.stack([array.reshape(-1) for array in per_row]),
            temperature=temperature,
            tiles=kernel.tiles,
            interpret=kernel.interpret,
        )
        by_hidden = by_hidden.reshape(hidden.shape)
        if axis is not None:
            by_hidden = jax.lax.psum(by_hidden, axis)
        # A part of the rows gives a part of the head's gradient.
        for row_axis in kernel.row_axes:
            if row_axis == scattered:
                by_head = jax.lax.psum_scatter(
                    by_head, row_axis, scatter_dimension=1, tiled=True
                )
            else:
                by_head = jax.lax.psum(by_head, row_axis)
        return by_hidden, by_head

    rows, words = _specs(kernel)
    by_hidden, by_head = _on_mesh(
        part,
        kernel,
        (rows, words, *[rows] * 5),
        (rows, PartitionSpec(axis, scattered)),
    )(hidden, head, tokens, totals, entropies, *cotangents)
    return by_hidden, by_head, None


_fused.defvjp(_forward, _backward)


def _own(tokens, head, axis: str | None):
    """Tokens as rows of this device's part of the head."""
    return tokens if axis is None else tokens - jax.lax.axis_index(axis) * len(head)


def _specs(kernel: HeadKernel) -> tuple[PartitionSpec, PartitionSpec]:
    """Of arrays [B, ...] and of the head as the kernels read it."""
    rows = PartitionSpec(kernel.row_axes) if kernel.row_axes else PartitionSpec()
    return rows, PartitionSpec(kernel.vocabulary_axis)


def _scattered_axis(kernel: HeadKernel, width: int) -> str | None:
    """The row axis over which the head's gradient is left split, as its optimizer's
    moments are: the last one, where it divides the width."""
    if kernel.mesh is None or not kernel.row_axes:
        return None
    last = kernel.row_axes[-1]
    return last if width % kernel.mesh.shape[last] == 0 else None


def _on_mesh(part, kernel: HeadKernel, in_specs, out_specs):
    if kernel.mesh is None:
        return part
    # Kernels say nothing of how their outputs vary over the mesh.
    return jax.shard_map(
        part,
        mesh=kernel.mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        check_vma=False,
    )
