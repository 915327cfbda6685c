"""Counts of any model on any problems: sample, verify, write down."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int

from rlvr_jax.analysis.counts import ProblemCounts
from rlvr_jax.config import Config
from rlvr_jax.core.logprobs import token_logprobs
from rlvr_jax.data.problems import load_problems
from rlvr_jax.data.prompts import encode_prompts
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.tokenizer import Tokenizer, stop_ids
from rlvr_jax.errors import UserError
from rlvr_jax.mesh.mesh import fetch
from rlvr_jax.rollout.control import Control
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.rollout.scorer import make_scorer, reward_verifiers
from rlvr_jax.train.batches import PromptBatches, slots_for
from rlvr_jax.train.evaluation import Batch, Evaluation
from rlvr_jax.train.forward import completion_states, flat
from rlvr_jax.train.loading import Model
from rlvr_jax.train.micro_batches import Prompts
from rlvr_jax.train.policy import architecture_of
from rlvr_jax.train.reranking import Reranker, batch_scores
from rlvr_jax.train.streaming import steering_engine
from rlvr_jax.verifiers.base import Sample, Status
from rlvr_jax.verifiers.pool import VerifierPool
from rlvr_jax.verifiers.spurious import KEY_VERIFIER

_NO_VOTE = ("code", "instructions")
"""Verifiers of what has no single answer: nothing to count votes of."""


def count(
    config: Config,
    model: Model,
    problems: Sequence[Problem],
    pool: VerifierPool,
    mesh: Mesh,
    *,
    base: Model | None = None,
    reranker: Reranker | None = None,
    keep_texts: bool = False,
) -> list[ProblemCounts]:
    """Samples evaluation.num_generations completions of each problem and judges them.

    Args:
      config: evaluation.*, rollout.*, control.*, data.* and reward.* are read.
      model: what is sampled.
      problems: what is asked; prompts that are too long are dropped or an error, as
        data.too_long says.
      pool: where the verifiers run.
      mesh: the devices.
      base: another model, of the same tokenizer, under which each completion is scored
        too.
      reranker: a reward model, of the same tokenizer, whose scores choose among the
        completions.
      keep_texts: write the completions down as well.

    Returns:
      One record per problem, with all that counts.py names.

    Raises:
      UserError: base or reranker have another tokenizer, or no prompt fits.
      VerifierFailure: too many checks failed.
    """
    evaluation = evaluation_of(config, model, problems, pool, mesh)
    if base is not None:
        _check_same_tokens(model.tokenizer, base.tokenizer, problems, "base")
    if reranker is not None:
        _check_same_tokens(model.tokenizer, reranker.tokenizer, problems, "scorer")
    kept = evaluation.prompts.problems
    control = evaluation.engine.control if evaluation.engine else Control()
    found = []
    for batch in evaluation.sampled(model.parameters):
        logprobs = {"logprobs": np.asarray(fetch(batch.rollouts.rollout_logprobs))}
        if base is not None:
            logprobs["base_logprobs"] = _base_logprobs(base, batch, config)
        keys = _answers(kept, batch, pool)
        scores = None if reranker is None else batch_scores(reranker, batch)
        found += [
            _record(kept, batch, place, keys, logprobs, scores, keep_texts, control)
            for place in range(batch.used)
        ]
    return found


def evaluation_of(
    config: Config,
    model: Model,
    problems: Sequence[Problem],
    pool: VerifierPool,
    mesh: Mesh,
) -> Evaluation:
    """What samples and judges completions of the problems; as `count`."""
    settings, data = config.evaluation, config.data
    examples = []
    if data.few_shot:
        examples = load_problems(
            data,
            split="train",
            default_verifier=config.reward.verifier,
            seed=config.seed,
        )
    prompts = encode_prompts(
        problems, data, model.tokenizer, examples_from=examples, seed=config.seed
    )
    reads = pool.check(reward_verifiers(config, prompts.problems))
    sampling = Sampling.from_config(
        config.rollout, stop_ids(model.tokenizer, config.rollout.stop)
    )
    sampling = dataclasses.replace(
        sampling,
        num_generations=settings.num_generations,
        temperature=settings.temperature,
        top_p=settings.top_p,
    )
    architecture = architecture_of(config.model, model.tokenizer.vocab_size)
    return Evaluation(
        graphdef=model.graphdef,
        prompts=prompts,
        batches=PromptBatches(
            prompts.tokens,
            config.batch.prompts_per_step,
            slots_for(prompts.tokens),
            model.tokenizer.pad_id,
            settings.num_generations,
            mesh,
        ),
        scorer=make_scorer(
            config, model.tokenizer, prompts.problems, reads, pool
        ).for_evaluation(prompts.problems),
        sampling=sampling,
        seed=config.seed,
        engine=steering_engine(
            config, model.tokenizer, architecture, model.graphdef, sampling
        ),
    )


def _answers(
    problems: Sequence[Problem], batch: Batch, pool: VerifierPool
) -> list[str | None]:
    """A key per completion that equal answers share; None for no answer."""
    n = batch.lengths.shape[1]
    asked = [problems[row] for row in batch.rows for _ in range(n)]
    verdicts = pool.verify(
        [
            Sample(KEY_VERIFIER, text, p.answer, p.question, p.meta)
            for text, p in zip(batch.scores.texts, asked, strict=True)
        ]
    )
    return [
        verdict.detail
        if verdict.status is Status.CORRECT and p.verifier not in _NO_VOTE
        else None
        for verdict, p in zip(verdicts, asked, strict=True)
    ]


def _record(
    problems, batch, place, keys, logprobs, scores, keep_texts, control: Control
) -> ProblemCounts:
    """The record of the problem at one place of a batch."""
    problem = problems[batch.rows[place]]
    n = batch.lengths.shape[1]
    span = slice(place * n, (place + 1) * n)
    numbers: dict[str | None, int] = {None: -1}
    for key in keys[span]:
        numbers.setdefault(key, len(numbers) - 1)
    correct = batch.scores.correct[place].astype(int).tolist()
    rows = zip(batch.tokens[place], batch.lengths[place], strict=True)
    written = [tokens[:length].tolist() for tokens, length in rows]
    return ProblemCounts(
        id=str(problem.id),
        n=n,
        c=sum(correct),
        domain=str(problem.meta.get("domain", "")),
        correct=correct,
        answers=[numbers[key] for key in keys[span]] if len(numbers) > 1 else (),
        tokens=batch.lengths[place].tolist(),
        thinking=[control.thinking_tokens(row) for row in written]
        if control.close
        else (),
        ended=batch.ended[place].astype(int).tolist(),
        scores=() if scores is None else scores[place].tolist(),
        completions=batch.scores.texts[span] if keep_texts else (),
        **{k: _means(v[place], batch.lengths[place]) for k, v in logprobs.items()},
    )


def _means(logprobs: np.ndarray, lengths: np.ndarray) -> list[float]:
    mask = np.arange(logprobs.shape[-1]) < lengths[:, None]
    return (np.where(mask, logprobs, 0).sum(axis=-1) / lengths).tolist()


def _base_logprobs(base: Model, batch: Batch, config: Config) -> np.ndarray:
    rollouts = batch.rollouts
    return np.asarray(
        fetch(
            _logprobs_under(
                base.graphdef,
                base.parameters,
                Prompts(rollouts.prompt_tokens, rollouts.prompt_lengths),
                rollouts.completion_tokens,
                chunk=config.batch.logprob_chunk_tokens,
            )
        )
    )


@functools.partial(jax.jit, static_argnames=("graphdef", "chunk"))
def _logprobs_under(
    graphdef: nnx.GraphDef,
    parameters: nnx.State,
    prompts: Prompts,
    completion_tokens: Int[Array, "P G T"],
    *,
    chunk: int,
) -> Float[Array, "P G T"]:
    """Log-probs at temperature 1, over the whole vocabulary."""
    decoder: Any = nnx.merge(graphdef, parameters)
    states, _ = completion_states(decoder, prompts, completion_tokens)
    rows = states.shape[0] * states.shape[1]
    logprobs, _ = token_logprobs(
        flat(states),
        decoder.head_weight,
        flat(completion_tokens),
        chunk=max(1, chunk // rows),
    )
    return jnp.reshape(logprobs, completion_tokens.shape)


def _check_same_tokens(
    one: Tokenizer, other: Tokenizer, problems: Sequence[Problem], name: str
) -> None:
    for problem in problems[:8]:
        text = problem.question
        if one.encode(text) != other.encode(text):
            raise UserError(
                f"the {name} splits text into other tokens than the model, so it "
                f"cannot score its completions; give a {name} of the same family"
            )
