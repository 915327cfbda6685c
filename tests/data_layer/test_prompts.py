"""Prompts: chat and raw, examples, length limits, cold-start completions."""

import dataclasses

import pytest

from rlvr_jax.config import Config, DataConfig
from rlvr_jax.data import prompts, tasks
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.tokenizer import load_tokenizer
from rlvr_jax.validate import validate

TOKENIZER = load_tokenizer("")
SUMS = tasks.generate("arithmetic", 0, "train", options={"max_operand": 9, "count": 40})
RAW = DataConfig(template="raw", few_shot=4)


def problem(question, answer="1", **meta):
    return Problem(question, question, answer, "math", meta)


def render(asked, data, examples=()):
    return prompts.render_prompt(asked, data, TOKENIZER, examples)


def test_a_chat_has_system_prompt_question_and_suffix():
    data = DataConfig(system_prompt="Be brief.", question_suffix=" Box it.")
    assert render(problem("1+1?"), data) == "Be brief.\n1+1? Box it.\n"
    assert render(problem("1+1?"), DataConfig()) == "1+1?\n"


def test_raw_one_line_examples_are_lines():
    # The form of the SmolLM2 arithmetic recipe.
    examples = [problem("9 + 9 =", "18"), problem("5 + 8 =", "13", solution="13")]
    text = render(problem("6 + 4 ="), RAW, examples)
    assert text == "9 + 9 = 18\n5 + 8 = 13\n6 + 4 ="


def test_raw_longer_examples_are_paragraphs():
    examples = [problem("Q: a", "1", solution="so\n#### 1"), problem("Q: b", "2")]
    data = DataConfig(template="raw", system_prompt="Solve.", question_suffix="\nA:")
    validate(Config(data=data))  # a raw prompt reads its system prompt
    assert render(problem("Q: c"), data, examples) == (
        "Solve.\n\nQ: a\nA: so\n#### 1\n\nQ: b\nA: 2\n\nQ: c\nA:"
    )


def test_examples_are_different_and_never_the_question_itself():
    for asked in SUMS:
        examples = prompts.few_shot_examples(asked, SUMS, 4, seed=0)
        questions = {example.question for example in examples}
        assert len(questions) == 4
        assert asked.question not in questions


def test_examples_depend_on_the_problem_and_the_seed_alone():
    def draw(asked, seed):
        return tuple(e.id for e in prompts.few_shot_examples(asked, SUMS, 4, seed=seed))

    assert draw(SUMS[0], 0) == draw(SUMS[0], 0)
    assert len({draw(asked, seed) for asked in SUMS for seed in (0, 1)}) > 70
    encoded = prompts.encode_prompts(SUMS, RAW, TOKENIZER, examples_from=SUMS)
    few = prompts.encode_prompts(SUMS[5:7], RAW, TOKENIZER, examples_from=SUMS)
    assert few.tokens == encoded.tokens[5:7]


def test_a_pool_of_just_enough_examples_is_enough():
    pool = [SUMS[1]] * 50 + SUMS[:5] + [SUMS[2]] * 50
    examples = prompts.few_shot_examples(SUMS[0], pool, 4, seed=0)
    assert {e.id for e in examples} == {p.id for p in SUMS[1:5]}


@pytest.mark.parametrize("pool", [[], SUMS[:3], [SUMS[0]] * 50])
def test_too_few_examples_are_explained(pool):
    with pytest.raises(ValueError, match=r"data\.few_shot=4 needs as many other"):
        prompts.few_shot_examples(SUMS[0], pool, 4, seed=0)


def test_tokens_are_those_of_the_text():
    for data in (DataConfig(), RAW):
        encoded = prompts.encode_prompts(SUMS, data, TOKENIZER, examples_from=SUMS)
        assert encoded.problems == SUMS
        assert encoded.dropped == 0
        for asked, ids in zip(SUMS, encoded.tokens, strict=True):
            examples = prompts.few_shot_examples(asked, SUMS, data.few_shot, seed=0)
            assert TOKENIZER.decode(ids) == render(asked, data, examples)


def test_long_prompts_are_dropped_and_counted():
    mixed = [problem("12345"), problem("1" * 30), problem("123456789")]
    data = DataConfig(max_prompt_tokens=10)  # 9 characters and the line end
    encoded = prompts.encode_prompts(mixed, data, TOKENIZER)
    assert [p.question for p in encoded.problems] == ["12345", "123456789"]
    assert [len(ids) for ids in encoded.tokens] == [6, 10]
    assert encoded.dropped == 1


def test_a_long_prompt_is_an_error_where_asked_for():
    data = DataConfig(max_prompt_tokens=10, too_long="error")
    with pytest.raises(ValueError, match="'1111111111' has 11 tokens, more than") as e:
        prompts.encode_prompts([problem("12"), problem("1" * 10)], data, TOKENIZER)
    assert "data.max_prompt_tokens=10; raise it, or set data.too_long=drop" in str(
        e.value
    )


def test_no_prompt_short_enough_is_an_error():
    data = DataConfig(max_prompt_tokens=2)
    with pytest.raises(ValueError, match="none of 40 prompts has data"):
        prompts.encode_prompts(SUMS, data, TOKENIZER)


def test_a_character_without_token_names_the_problem():
    with pytest.raises(ValueError, match="prompt of problem 'caf\u00e9'"):
        prompts.encode_prompts([problem("caf\u00e9")], DataConfig(), TOKENIZER)


@pytest.mark.parametrize(("template", "start"), [("chat", ""), ("raw", " ")])
def test_worked_solutions_continue_their_prompts(template, start):
    data = DataConfig(template=template)
    for asked, solutions in zip(
        SUMS, prompts.encode_solutions(SUMS, data, TOKENIZER), strict=True
    ):
        (ids,) = solutions
        assert ids[-1] == TOKENIZER.eos_ids[0]
        assert TOKENIZER.decode(ids) == start + asked.meta["solution"]


def test_a_problem_may_have_several_solutions():
    several = dataclasses.replace(problem("1+1"), meta={"solutions": ["2", "1+1\n2"]})
    (found,) = prompts.encode_solutions([several], DataConfig(), TOKENIZER)
    assert [TOKENIZER.decode(ids) for ids in found] == ["2", "1+1\n2"]


@pytest.mark.parametrize("solutions", ["2 or so", [], [2], None])
def test_solutions_are_a_list_of_texts(solutions):
    """A text would be taken for as many solutions as it has characters."""
    wrong = dataclasses.replace(problem("1+1"), meta={"solutions": solutions})
    with pytest.raises(ValueError, match=r"\(a list of texts\)"):
        prompts.encode_solutions([wrong], DataConfig(), TOKENIZER)


def test_a_problem_without_solution_is_explained():
    with pytest.raises(ValueError, match=r"no worked solution .* warmup\.steps=0"):
        prompts.encode_solutions([problem("1+1")], DataConfig(), TOKENIZER)
