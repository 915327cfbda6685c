"""A model of this project as the judge: batched, on the devices of the run.

It has the interface of `verifiers.judge.Judge` and asks the same questions. A small
model is a poor judge; audit it.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from flax import nnx

from rlvr_jax.data.tokenizer import Tokenizer, load_tokenizer, stop_ids
from rlvr_jax.models.weights import load_decoder
from rlvr_jax.rollout.sampler import Sampling, row_keys, sample
from rlvr_jax.verifiers.base import Sample, Status, Verdict
from rlvr_jax.verifiers.judge import key_of, messages_for, read

_BUCKET = 128
"""Prompts are padded to multiples of it, so that few programs are compiled."""


@dataclasses.dataclass
class ModelJudge:
    """Judges with the model in a directory, the most likely reply at each token."""

    tokenizer: Tokenizer
    graphdef: nnx.GraphDef
    parameters: nnx.State
    sampling: Sampling
    batch_size: int
    max_prompt_tokens: int
    _spent: dict[str, float] = dataclasses.field(default_factory=dict)

    @classmethod
    def load(
        cls,
        path: str,
        *,
        batch_size: int,
        max_prompt_tokens: int,
        max_tokens: int,
        dtype: str = "float32",
    ) -> "ModelJudge":
        """The judge at `path`.

        Args:
          path: a Hugging Face directory or a .gguf file, with a chat template.
          batch_size: questions answered at the same time.
          max_prompt_tokens: a longer question makes the answer unparseable.
          max_tokens: of its replies.
          dtype: of its parameters.

        Raises:
          UserError: no readable model or no chat template there.
        """
        place = pathlib.Path(path).expanduser()
        tokenizer = load_tokenizer(place)
        tokenizer.apply_chat([{"role": "user", "content": "?"}])
        graphdef, parameters = nnx.split(load_decoder(place, dtype=jnp.dtype(dtype)))
        sampling = Sampling(1, max_tokens, stop_ids(tokenizer, ()), temperature=0.0)
        return cls(
            tokenizer, graphdef, parameters, sampling, batch_size, max_prompt_tokens
        )

    def submit(self, samples: Sequence[Sample]) -> Callable[[], list[Verdict]]:
        """Prepares the questions; the function that it returns has them answered."""
        keys = [key_of(each) for each in samples]
        verdicts: dict[str, Verdict] = {}
        asked: dict[str, tuple[Sample, list[int]]] = {}
        for key, each in zip(keys, samples, strict=True):
            messages = messages_for(each)
            if isinstance(messages, Verdict):
                verdicts[key] = messages
                continue
            ids = self.tokenizer.encode_chat(messages)
            if len(ids) > self.max_prompt_tokens:
                problem = f"too long for the judge: {len(ids)} tokens"
                verdicts[key] = Verdict(Status.UNPARSEABLE, 0.0, problem)
            else:
                asked[key] = (each, ids)

        def answered() -> list[Verdict]:
            order = sorted(asked, key=lambda key: len(asked[key][1]))
            for start in range(0, len(order), self.batch_size):
                chosen = order[start : start + self.batch_size]
                replies = self._replies([asked[key][1] for key in chosen])
                for key, reply in zip(chosen, replies, strict=True):
                    verdicts[key] = _verdict(asked[key][0], reply)
            return [verdicts[key] for key in keys]

        return answered

    def metrics(self) -> dict[str, float]:
        """What was spent since the last call of this function, by metric name."""
        names = ("calls", "prompt_tokens", "completion_tokens")
        found = {f"judge/{name}": self._spent.get(name, 0.0) for name in names}
        self._spent.clear()
        return found

    def _replies(self, prompts: list[list[int]]) -> list[str]:
        """The replies to one batch, filled up to `batch_size` rows."""
        slots = -(-max(map(len, prompts)) // _BUCKET) * _BUCKET
        rows = np.full((self.batch_size, slots), self.tokenizer.pad_id, np.int32)
        lengths = np.ones(self.batch_size, np.int32)
        for i, ids in enumerate(prompts):
            rows[i, slots - len(ids) :] = ids
            lengths[i] = len(ids)
        keys = row_keys(0, 0, jnp.arange(self.batch_size), 1)
        rollouts = sample(
            self.graphdef,
            self.parameters,
            jnp.asarray(rows),
            jnp.asarray(lengths),
            keys,
            sampling=self.sampling,
        )
        used = np.asarray(rollouts.completion_lengths - rollouts.ended)[:, 0]
        tokens = np.asarray(rollouts.completion_tokens)[:, 0]
        spent = {
            "calls": len(prompts),
            "prompt_tokens": int(lengths[: len(prompts)].sum()),
            "completion_tokens": int(used[: len(prompts)].sum()),
        }
        for name, count in spent.items():
            self._spent[name] = self._spent.get(name, 0.0) + count
        return [
            self.tokenizer.decode(row[:count].tolist())
            for row, count in zip(tokens, used[: len(prompts)], strict=False)
        ]


def _verdict(asked: Sample, reply: str) -> Verdict:
    try:
        return read(asked, reply)
    except ValueError as error:
        return Verdict(Status.CRASH, 0.0, f"judge: malformed reply: {error}")
