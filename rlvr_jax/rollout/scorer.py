"""The scorer of a run, from its settings, and what it needs to be checked first."""

from collections.abc import Iterable, Mapping, Sequence

from rlvr_jax.config import Config
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.tokenizer import Tokenizer, stop_ids
from rlvr_jax.errors import UserError
from rlvr_jax.rollout.model_judge import ModelJudge
from rlvr_jax.rollout.rewards import parts_of, verifiers_of
from rlvr_jax.rollout.scoring import Audit, Scorer
from rlvr_jax.rollout.wrong_rewards import needed_verifier
from rlvr_jax.verifiers.audit import AuditStream
from rlvr_jax.verifiers.judge import NAMES, Judge
from rlvr_jax.verifiers.judge_client import ChatClient
from rlvr_jax.verifiers.pool import VerifierPool

_MAY_READ_REASONING = ("format:", "language", "repetition", "length")
"""Form, language and length: all that a reward may take from the reasoning unasked."""


def reward_verifiers(config: Config, problems: Iterable[Problem]) -> list[str]:
    """The verifiers that rewards are made from, for `VerifierPool.check`.

    The judge runs beside the pool and is not among them.

    Raises:
      UserError: reward.parts cannot be read, or a judge is named and judge.url is "".
    """
    names = {problem.verifier for problem in problems}
    names.update(verifiers_of(parts_of(config.reward)))
    names.add(needed_verifier(config.noise))
    watching = {config.audit.verifier, config.evaluation.strict_verifier}
    judges = (names | watching) & set(NAMES)
    if judges and not (config.judge.url or config.judge.path):
        raise UserError(
            f"verifier {min(judges)!r} is a language model: set judge.url and "
            "judge.model, or judge.path"
        )
    return sorted(names - {"", *NAMES})


def check_what_is_read(config: Config, reads: Mapping[str, str]) -> None:
    """Refuses rewards that read the reasoning without saying so.

    What is rewarded for its reasoning learns to write what is rewarded.

    Args:
      config: its reward.reads_reasoning lists those that may.
      reads: verifier of the reward -> "answer" or "completion".

    Raises:
      UserError: a verifier that judges content reads the whole completion.
    """
    declared = {name.strip() for name in config.reward.reads_reasoning.split(",")}
    for name, part in reads.items():
        allowed = name.startswith(_MAY_READ_REASONING) or name in declared
        if part == "completion" and not allowed:
            raise UserError(
                f"verifier {name!r} reads the reasoning, and a reward for it teaches "
                "the policy to write reasoning that pleases. Have it read the answer, "
                f"or declare it: reward.reads_reasoning={name!r}"
            )


def make_scorer(
    config: Config,
    tokenizer: Tokenizer,
    problems: Sequence[Problem],
    reads: Mapping[str, str],
    pool: VerifierPool,
) -> Scorer:
    """The scorer of training completions."""
    audit = config.audit
    stream = AuditStream(audit.share, audit.max_gap, audit.window)
    return Scorer(
        tokenizer,
        problems,
        config.reward,
        reads,
        pool,
        stop_ids(tokenizer, config.rollout.stop),
        noise=config.noise,
        judge=_judge(config),
        audit=Audit(audit.verifier, stream, audit.stop) if audit.verifier else None,
    )


def _judge(config: Config) -> Judge | ModelJudge | None:
    judge = config.judge
    if judge.path:
        return ModelJudge.load(
            judge.path,
            batch_size=judge.concurrency,
            max_prompt_tokens=judge.max_prompt_tokens,
            max_tokens=judge.max_tokens,
            dtype=config.model.dtype,
        )
    if not judge.url:
        return None
    client = ChatClient(
        judge.url,
        judge.model,
        api_key_env=judge.api_key_env,
        max_tokens=judge.max_tokens,
        timeout_s=judge.timeout_s,
        retries=judge.retries,
    )
    return Judge(client, judge.concurrency, judge.price_prompt, judge.price_completion)
