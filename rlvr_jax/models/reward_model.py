"""Reward models as transformers stores them: a decoder with a head of one number.

That is `AutoModelForSequenceClassification` of one label: the tensors of a decoder and
score.weight, [1, D]. The score of a text is the product of that row with the state
after its last token.
"""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32

from rlvr_jax.errors import UserError
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.hf_weights import SCORE, SafetensorsDirectory, tensor_name
from rlvr_jax.models.weights import read_parameters


class RewardModel(NamedTuple):
    """A decoder without an LM head, and the head of one number."""

    parameters: dict[str, jax.Array]
    """By name, as `parameter_shapes` has them."""
    score: Float32[np.ndarray, " D"]


class RewardModelDirectory(SafetensorsDirectory):
    """The files of a reward model; an LM head that they may hold too is not read."""

    def __init__(self, directory: pathlib.Path):
        """Opens all files and reads their headers, no weights yet.

        Raises:
          UserError: as of any directory; or it holds no score of one number.
        """
        super().__init__(directory)
        self.shapes.pop(tensor_name("head"), None)
        # Without an LM head: as if that were the embedding.
        self.architecture = dataclasses.replace(self.architecture, tie_embeddings=True)
        found = self.shapes.pop(tensor_name(SCORE), None)
        wanted = (1, self.architecture.hidden_size)
        if found != wanted:
            self.close()
            held = "no such tensor" if found is None else f"shape {list(found)}"
            raise UserError(
                f"{directory} is no reward model: it needs {tensor_name(SCORE)} of "
                f"shape {list(wanted)} (one label) and has {held}. "
                "`python -m launch.reward_model` makes one."
            )

    def score(self) -> Float32[np.ndarray, " D"]:
        """The head's weights."""
        whole = self.read(tensor_name(SCORE), (slice(None), slice(None)))
        return whole[0].astype(np.float32)


def load_reward_model(
    path: str | os.PathLike[str],
    *,
    architecture: Architecture,
    shardings: Callable[[Architecture], Mapping[str, jax.sharding.Sharding]],
) -> RewardModel:
    """Loads the float32 parameters of a reward model of a given architecture.

    Args:
      path: a Hugging Face directory. "~" is expanded.
      architecture: what it has to have; whether its embedding is tied to an LM head
        does not matter, nor for how many positions it was made.
      shardings: of an architecture, parameter name -> where it lives.

    Raises:
      UserError: it is no reward model, or one of another architecture; the message
        lists what differs.
    """
    place = pathlib.Path(path).expanduser()
    with contextlib.closing(RewardModelDirectory(place)) as stored:
        differ = {
            field.name: (
                getattr(stored.architecture, field.name),
                getattr(architecture, field.name),
            )
            for field in dataclasses.fields(Architecture)
            if field.name not in ("tie_embeddings", "max_positions")
        }
        said = [f"{n} {a} against {b}" for n, (a, b) in differ.items() if a != b]
        if said:
            raise UserError(
                f"the reward model at {place} is not of the policy's architecture: "
                f"{', '.join(said)}. A critic is computed by the policy's program: "
                "give a reward model of the same base model (critic.path)."
            )
        parameters = read_parameters(
            stored, dtype=jnp.float32, shardings=shardings(stored.architecture)
        )
        return RewardModel(parameters, stored.score())
