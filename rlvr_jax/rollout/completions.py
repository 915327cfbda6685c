"""Completions on the host: finished ones, and ones that will go on."""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int, Shaped, UInt, UInt32

from rlvr_jax.rollout.control import Control
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.rollout.slots import NOT_FORCED
from rlvr_jax.types import Rollouts


@dataclasses.dataclass
class Completions:
    """B completions, padded on the right with zeros; the engine writes into them.

    Together with the prompt a row is all that is needed to go on with it later: its
    noise is a function of its key and the position of a token.
    """

    keys: UInt32[np.ndarray, "B N"]
    """`jax.random.key_data` of each row's sampling key."""
    tokens: Int[np.ndarray, "B T"]
    logprobs: Float32[np.ndarray, "B T"]
    """Each under the policy that sampled the token."""
    versions: Int[np.ndarray, "B T"]
    """Of that policy: steps it had learned from."""
    forced: Int[np.ndarray, "B T"]
    """Tokens that were written whatever was drawn, or are to be, behind the end too;
    NOT_FORCED elsewhere."""
    lengths: Int[np.ndarray, " B"]
    ended: Bool[np.ndarray, " B"]
    cut: Bool[np.ndarray, " B"]
    """Over without an end, before the limit (`Control.answer_tokens`)."""
    kept: UInt32[np.ndarray, "B T W"] | None = None
    """As `Rollouts.kept_tokens`."""
    routes: UInt[np.ndarray, "B T L E"] | None = None
    """As `Rollouts.routes`; of finished rows only: who goes on picks experts anew."""

    @classmethod
    def new(
        cls,
        keys: UInt32[np.ndarray, "B N"],
        sampling: Sampling,
        vocab_size: int,
        control: Control,
    ) -> "Completions":
        """Completions without any token yet."""
        rows, length = len(keys), sampling.max_completion_tokens
        forced = np.full((rows, length), NOT_FORCED, np.int32)
        prefix = control.prefix[:length]
        forced[:, : len(prefix)] = prefix
        words = (rows, length, -(-vocab_size // 32))
        return cls(
            keys=np.asarray(keys),
            tokens=np.zeros((rows, length), np.int32),
            logprobs=np.zeros((rows, length), np.float32),
            versions=np.zeros((rows, length), np.int32),
            forced=forced,
            lengths=np.zeros(rows, np.int32),
            ended=np.zeros(rows, bool),
            cut=np.zeros(rows, bool),
            kept=np.zeros(words, np.uint32) if sampling.truncates else None,
        )

    @property
    def finished(self) -> Bool[np.ndarray, " B"]:
        """Rows that ended, were cut, or have no room for another token."""
        return self.ended | self.cut | (self.lengths >= self.tokens.shape[1])

    def rows(self, where: Int[np.ndarray, " K"] | slice) -> "Completions":
        """A copy of some of the rows."""
        return Completions(**{k: v[where].copy() for k, v in _arrays(self).items()})

    def as_rollouts(
        self,
        prompt_tokens: Int[np.ndarray, "P S"],
        prompt_lengths: Int[np.ndarray, " P"],
        prompt_routes: UInt[np.ndarray, "P S L E"] | None,
        *,
        steered: bool,
        with_versions: bool = False,
    ) -> Rollouts:
        """Rows as B = P * G rollouts, in their order.

        Args:
          prompt_tokens: left-padded.
          prompt_lengths: of each prompt.
          prompt_routes: as `Rollouts.prompt_routes`.
          steered: some tokens may have been forced.
          with_versions: say which policy sampled each token.
        """
        count = len(prompt_lengths)
        shape = (count, len(self.lengths) // count)

        def grouped(rows: Shaped[np.ndarray, "B ..."]) -> Array:
            return jnp.asarray(rows.reshape(*shape, *rows.shape[1:]))

        written = np.arange(self.tokens.shape[1]) < self.lengths[:, None]
        forced = written & (self.forced != NOT_FORCED)
        return Rollouts(
            prompt_tokens=jnp.asarray(prompt_tokens),
            prompt_lengths=jnp.asarray(prompt_lengths),
            completion_tokens=grouped(self.tokens),
            completion_lengths=grouped(self.lengths),
            ended=grouped(self.ended),
            rollout_logprobs=grouped(self.logprobs),
            group_id=jnp.broadcast_to(jnp.arange(count)[:, None], shape),
            kept_tokens=None if self.kept is None else grouped(self.kept),
            forced=grouped(forced) if steered else None,
            routes=None if self.routes is None else grouped(self.routes),
            prompt_routes=None if prompt_routes is None else jnp.asarray(prompt_routes),
            versions=grouped(self.versions) if with_versions else None,
        )


def joined(parts: Sequence[Completions]) -> Completions:
    """The rows of all parts, one after the other; without routes in a part: zeros."""
    every = [_arrays(part) for part in parts]
    shaped = {name: array for arrays in every for name, array in arrays.items()}

    def rows(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
        if name in arrays:
            return arrays[name]
        like = shaped[name]
        return np.zeros((len(arrays["lengths"]), *like.shape[1:]), like.dtype)

    return Completions(
        **{name: np.concatenate([rows(name, e) for e in every]) for name in shaped}
    )


def _arrays(completions: Completions) -> dict[str, np.ndarray]:
    """By field, without those that are None."""
    return {
        field.name: getattr(completions, field.name)
        for field in dataclasses.fields(completions)
        if getattr(completions, field.name) is not None
    }
