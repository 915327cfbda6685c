"""What a file of weights must offer to be loaded, and how tensors are checked.

A parameter of ours stacks the tensors of all layers and experts; files hold one tensor
each, matrices as [outputs, inputs].
"""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np

from rlvr_jax.errors import UserError
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.parameters import parameter_shapes, stacked_axes

Index = tuple[slice, ...]


@runtime_checkable
class CheckpointFile(Protocol):
    """An open checkpoint in one of the formats."""

    location: str
    """The file or directory, for error messages."""
    architecture: Architecture
    shapes: dict[str, tuple[int, ...]]
    """Name -> shape of every tensor that holds a weight, as stored."""

    def tensor_name(self, parameter: str, at: tuple[int, ...] = ()) -> str:
        """What this format calls the part of our `parameter` at (layer, expert).

        `at` is as long as the parameter is stacked: empty outside layers.
        """
        ...

    def read(self, name: str, index: Index) -> np.ndarray:
        """The part `index` of a tensor, in the stored layout and as floats."""
        ...

    def close(self) -> None:
        """Lets go of the file; `read` is not called after it."""
        ...


def is_transposed(parameter: str, shape: tuple[int, ...]) -> bool:
    """Whether files hold `parameter` (of `shape`) as [outputs, inputs], unlike us."""
    axes = stacked_axes(parameter)
    return axes > 0 and len(shape) - axes == 2


def expected_tensors(checkpoint: CheckpointFile) -> Iterator[tuple[str, tuple]]:
    """The names and shapes that the checkpoint's architecture asks for."""
    arch = checkpoint.architecture
    for parameter, shape in parameter_shapes(arch).items():
        axes = stacked_axes(parameter)
        stored = shape[axes:]
        if is_transposed(parameter, shape):
            stored = stored[::-1]
        for at in np.ndindex(shape[:axes]):
            yield checkpoint.tensor_name(parameter, at), stored


def check_tensors(checkpoint: CheckpointFile) -> None:
    """Raises unless the checkpoint holds the expected tensors and no others.

    A second copy of a tied head is accepted when it equals the embedding.

    Raises:
      UserError: names the file and the first missing, misshapen or extra tensors.
    """
    expected = dict(expected_tensors(checkpoint))
    found = checkpoint.shapes
    problems = [f"{name} is missing" for name in expected if name not in found] + [
        f"{name} has shape {list(found[name])}, expected {list(shape)}"
        for name, shape in expected.items()
        if name in found and tuple(found[name]) != tuple(shape)
    ]
    head = checkpoint.tensor_name("head")
    extra = [name for name in found if name not in expected]
    if checkpoint.architecture.tie_embeddings and head in extra:
        extra.remove(head)
        problems += _tied_head_problems(checkpoint, head)
    problems += [f"{name} is not part of this architecture" for name in extra]
    if problems:
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise UserError(
            f"{checkpoint.location} does not hold the weights that its settings "
            f"describe: {'; '.join(problems[:3])}{more}."
        )


def _tied_head_problems(checkpoint: CheckpointFile, head: str) -> list[str]:
    embedding = checkpoint.tensor_name("embedding")
    if embedding not in checkpoint.shapes:
        return []
    every = (slice(None), slice(None))
    same = checkpoint.shapes[head] == checkpoint.shapes[embedding] and np.array_equal(
        checkpoint.read(head, every), checkpoint.read(embedding, every)
    )
    return [] if same else [f"{head} differs from {embedding}, to which it is tied"]
