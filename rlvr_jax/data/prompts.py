"""From problems to prompts: instruction, chat template or examples, token ids."""

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence

from rlvr_jax import config as config_lib
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.selection import normalized_question
from rlvr_jax.data.tokenizer import Tokenizer
from rlvr_jax.errors import UserError


@dataclasses.dataclass(frozen=True)
class EncodedPrompts:
    """Problems with the ids of their prompts, in the same order."""

    problems: list[Problem]
    tokens: list[list[int]]
    dropped: int
    """Problems left out because their prompt is too long."""


def render_prompt(
    problem: Problem,
    data: config_lib.DataConfig,
    tokenizer: Tokenizer,
    examples: Sequence[Problem] = (),
) -> str:
    """The prompt as text, special tokens spelled out.

    "chat": data.system_prompt and the question through the chat template. "raw": the
    system prompt, solved examples and the question as plain text, as in
    "9 + 9 = 18\\n6 + 4 =". The suffix follows every question.

    Args:
      problem: what is asked.
      data: template, system_prompt, question_suffix.
      tokenizer: has the chat template.
      examples: solved ones before a raw question; chats take none.

    Returns:
      The text.

    Raises:
      UserError: the model has no chat template, or it refuses the messages.
    """
    if data.template == "chat":
        return tokenizer.apply_chat(_messages(problem, data))
    return _raw_text(problem, data, examples)


def encode_prompts(
    problems: Sequence[Problem],
    data: config_lib.DataConfig,
    tokenizer: Tokenizer,
    *,
    examples_from: Sequence[Problem] = (),
    seed: int = 0,
) -> EncodedPrompts:
    """Token ids of all prompts; no question can write a special token.

    Args:
      problems: what is asked.
      data: the settings of prompts, max_prompt_tokens and too_long among them.
      tokenizer: makes the ids.
      examples_from: solved problems to draw data.few_shot examples from, as the
        training problems; a problem is never its own example.
      seed: of that draw, which depends on the problem's id and on nothing else.

    Returns:
      The problems that fit, their ids, and how many did not fit.

    Raises:
      UserError: a prompt is too long and data.too_long is "error", none is short
        enough, too few examples, or no chat template.
    """
    kept: list[Problem] = []
    tokens: list[list[int]] = []
    for problem in problems:
        examples = few_shot_examples(problem, examples_from, data.few_shot, seed=seed)
        try:
            ids = _encode_prompt(problem, data, tokenizer, examples)
        except ValueError as error:
            raise UserError(f"prompt of problem {problem.id!r}: {error}") from error
        if len(ids) <= data.max_prompt_tokens:
            kept.append(problem)
            tokens.append(ids)
        elif data.too_long == "error":
            raise UserError(
                f"the prompt of problem {problem.id!r} has {len(ids)} tokens, more "
                f"than data.max_prompt_tokens={data.max_prompt_tokens}; raise it, or "
                "set data.too_long=drop"
            )
    if not kept:
        raise UserError(
            f"none of {len(problems)} prompts has data.max_prompt_tokens="
            f"{data.max_prompt_tokens} tokens or fewer; raise it"
        )
    return EncodedPrompts(kept, tokens, dropped=len(problems) - len(kept))


def encode_solutions(
    problems: Sequence[Problem], data: config_lib.DataConfig, tokenizer: Tokenizer
) -> list[list[list[int]]]:
    """Solutions as completions to imitate, for a supervised cold start.

    Args:
      problems: each with meta["solution"], a worked solution, or meta["solutions"],
        several to draw from.
      data: its template says how prompt and solution join: a raw one by a space, as
        in the examples of `render_prompt`.
      tokenizer: makes the ids.

    Returns:
      For each problem the token ids of its solutions, each ending in the first end
      token.

    Raises:
      UserError: a problem has no worked solution.
    """
    start = "" if data.template == "chat" else " "
    completions = []
    for problem in problems:
        solutions = problem.meta.get("solutions", [problem.meta.get("solution")])
        if not (
            isinstance(solutions, list)
            and solutions
            and all(isinstance(solution, str) for solution in solutions)
        ):
            raise UserError(
                f"problem {problem.id!r} has no worked solution to start from; give "
                'each row a "solution" (a text) or "solutions" (a list of texts), or '
                "set warmup.steps=0"
            )
        completions.append(
            [
                [*tokenizer.encode(start + solution), tokenizer.eos_ids[0]]
                for solution in solutions
            ]
        )
    return completions


def few_shot_examples(
    problem: Problem, pool: Sequence[Problem], count: int, *, seed: int
) -> list[Problem]:
    """Draws solved examples for one problem, none of which asks the same question.

    Args:
      problem: for whom; its id and `seed` alone decide.
      pool: what to draw from.
      count: how many.
      seed: another one draws other examples.

    Returns:
      `count` different problems of the pool.

    Raises:
      UserError: the pool has fewer.
    """
    if count == 0:
        return []
    asked = normalized_question(problem.question)
    chosen: dict[str, Problem] = {}
    for place in _places(len(pool), 4 * count, f"{seed}\n{problem.id}"):
        question = normalized_question(pool[place].question)
        if question != asked:
            chosen.setdefault(question, pool[place])
        if len(chosen) == count:
            return list(chosen.values())
    raise UserError(
        f"data.few_shot={count} needs as many other solved problems, and the training "
        f"problems ({len(pool)}) have too few different ones; lower it"
    )


def _places(size: int, draws: int, key: str) -> Iterator[int]:
    """Places 0..size-1: some by the hash of a key, then all from the first on."""
    for draw in range(draws if size else 0):
        digest = hashlib.sha256(f"{key}\n{draw}".encode()).digest()
        yield int.from_bytes(digest[:8], "big") % size
    yield from range(size)


def _encode_prompt(
    problem: Problem,
    data: config_lib.DataConfig,
    tokenizer: Tokenizer,
    examples: Sequence[Problem],
) -> list[int]:
    if data.template == "chat":
        return tokenizer.encode_chat(_messages(problem, data))
    return tokenizer.encode_prompt(_raw_text(problem, data, examples))


def _messages(problem: Problem, data: config_lib.DataConfig) -> list[dict[str, str]]:
    user = {"role": "user", "content": problem.question + data.question_suffix}
    if not data.system_prompt:
        return [user]
    return [{"role": "system", "content": data.system_prompt}, user]


def _raw_text(
    problem: Problem, data: config_lib.DataConfig, examples: Sequence[Problem]
) -> str:
    solved = [
        f"{example.question}{data.question_suffix} "
        f"{example.meta.get('solution', example.answer)}"
        for example in examples
    ]
    # One line each where they fit on one; else a blank line shows where they end.
    between = "\n\n" if any("\n" in text for text in solved) else "\n"
    start = [data.system_prompt] if data.system_prompt else []
    return between.join([*start, *solved, problem.question + data.question_suffix])
