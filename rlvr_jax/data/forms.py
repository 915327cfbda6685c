"""The forms that public data sets come in, told apart by the fields of a row.

    HumanEval      openai/openai_humaneval
    MBPP           google-research-datasets/mbpp, full and sanitized
    IFEval         google/IFEval
    verl           BytedTsinghua-SIA/DAPO-Math-17k, open-r1/DAPO-Math-17k-Processed
    MATH, AIME,    HuggingFaceH4/MATH-500, DigitalLearningGmbH/MATH-lighteval,
    AMC            HuggingFaceH4/aime_2024, math-ai/aime25, AI-MO/aimo-validation-amc,
                   Maxwell-Jia/AIME_2024

GSM8K is {"question", "answer"} already. A row of any other form names its fields by
data.question_field and data.answer_field.
"""

import ast
import builtins
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlvr_jax.errors import UserError

Row = Mapping[str, Any]

_LEVEL = re.compile(r"Level (\d+)")
_BOX = re.compile(r"\\(?:boxed|fbox)\s*")
_BARE_BOX = re.compile(r"-?[0-9]+(?:\.[0-9]+)?|\\[a-zA-Z][^$\n]*|[^$\s]")
_WHOLE = re.compile(r"(\d+)\.0+")
_DAPO_TEMPLATE = re.compile(
    r"Solve the following math problem step by step\. The last line of your response "
    r"should be of the form Answer: \S+ \(without quotes\) where \S+ is the answer to "
    r"the problem\.\s*(.*?)\s*Remember to put your answer on its own line after "
    r'"Answer:"\.?\s*',
    re.DOTALL,
)


def in_our_form(row: Row) -> Row:
    """The row as {"question", "answer", "id"?, ...}; itself where no form fits.

    Fields that a form does not name stay; its own are renamed.

    Example:
      >>> in_our_form({"problem": "1 + 1?", "answer": 2.0, "level": "Level 3"})
      {'level': 3, 'question': '1 + 1?', 'answer': '2'}
    """
    if "question" in row and "answer" in row:
        return row
    for fields, read in _FORMS:
        if all(field in row for field in fields):
            rest = {name: value for name, value in row.items() if name not in fields}
            return rest | read(row)
    return row


def verifier_for(meta: Mapping[str, Any]) -> str:
    """The verifier that the fields of a row call for, or "".

    Example:
      >>> verifier_for({"test_list": ["assert f(1) == 2"]}), verifier_for({"level": 3})
      ('code', '')
    """
    if {"test", "entry_point"} <= meta.keys() or "test_list" in meta:
        return "code"
    return "instructions" if "instruction_id_list" in meta else ""


def with_function_name(question: str, meta: Mapping[str, Any]) -> str:
    """MBPP's question, which leaves the name that its tests call to be guessed.

    Example:
      >>> with_function_name("Add two.", {"test_list": ["assert plus(1, 2) == 3"]})
      'Add two.\\nThe function is called plus.'
    """
    tests = meta.get("test_list")
    name = _called(tests) if isinstance(tests, list) else ""
    if not name or name in question:
        return question
    return f"{question}\nThe function is called {name}."


def asked_in(value: Any) -> Any:
    """What the user asks in a chat of one turn; anything that is no chat as it is.

    Raises:
      UserError: the chat has several turns, or ends with another's words.

    Example:
      >>> asked_in([{"role": "user", "content": "1 + 1?"}])
      '1 + 1?'
    """
    if not (isinstance(value, list) and value and isinstance(value[-1], Mapping)):
        return value
    roles = [each.get("role", "user") for each in value if isinstance(each, Mapping)]
    if roles[-1] != "user" or roles[:-1] not in ([], ["system"]):
        raise UserError(
            f"the question is a chat of {', '.join(map(str, roles))}; one turn is "
            "read, a user's, with or without a system message before it"
        )
    return value[-1].get("content")


def last_box(solution: str) -> str | None:
    r"""What the last \boxed or \fbox of a solution holds; None without one.

    Example:
      >>> last_box(r"So $x=\boxed{\frac{1}{2}}$.")
      '\\frac{1}{2}'
    """
    boxes = list(_BOX.finditer(solution))
    if not boxes:
        return None
    rest = solution[boxes[-1].end() :]
    if not rest.startswith("{"):  # \boxed 5
        match = _BARE_BOX.match(rest)
        return match[0].strip() if match else None
    depth = 0
    for place, sign in enumerate(rest):
        escaped = place > 0 and rest[place - 1] == "\\"
        depth += 0 if escaped else (sign == "{") - (sign == "}")
        if depth == 0:
            return rest[1:place]
    return None


def _humaneval(row: Row) -> dict[str, Any]:
    return {
        "id": row["task_id"],
        "question": row["prompt"],
        "answer": row["canonical_solution"],
        "entry_point": row["entry_point"],
        "test": row["test"],
    }


def _mbpp(row: Row) -> dict[str, Any]:
    return {
        "id": f"mbpp-{row['task_id']}",
        "question": row.get("text") or row.get("prompt"),
        "answer": row["code"],
        "test_list": row["test_list"],
    }


def _ifeval(row: Row) -> dict[str, Any]:
    # The hub's table has a column for every argument, empty where it has no meaning.
    kwargs = [
        {name: value for name, value in (given or {}).items() if value is not None}
        for given in row["kwargs"]
    ]
    return {
        "id": f"ifeval-{row['key']}",
        "question": row["prompt"],
        "answer": None,
        "instruction_id_list": row["instruction_id_list"],
        "kwargs": kwargs,
    }


def _verl(row: Row) -> dict[str, Any]:
    prompt = asked_in(row["prompt"])
    if isinstance(prompt, str) and (match := _DAPO_TEMPLATE.fullmatch(prompt)):
        prompt = match[1]
    reward_model = row["reward_model"]
    if not isinstance(reward_model, Mapping):
        raise UserError(f"reward_model needs a ground_truth, got {reward_model!r:.60}")
    found = {"question": prompt, "answer": reward_model.get("ground_truth")}
    index = (row.get("extra_info") or {}).get("index")
    # open-r1's processed form has an empty solution in each row.
    return found if index is None else found | {"id": str(index)}


def _competition(row: Row) -> dict[str, Any]:
    question = row.get("problem", row.get("Problem"))
    solution = row.get("solution", row.get("Solution"))
    answer = row.get("answer", row.get("Answer"))
    if answer is None and isinstance(solution, str):
        answer = last_box(solution)
    if answer is None:
        raise UserError("has neither an answer nor a solution that ends in a box")
    found = {"question": question, "answer": _plain(answer)}
    if solution:
        found["solution"] = solution
    for name in ("unique_id", "id", "ID"):
        if row.get(name) is not None:
            found["id"] = str(row[name])
            break
    if match := _LEVEL.fullmatch(str(row.get("level"))):
        found["level"] = int(match[1])
    return found


_FORMS: Sequence[tuple[tuple[str, ...], Callable[[Row], dict[str, Any]]]] = (
    (("task_id", "prompt", "canonical_solution", "test", "entry_point"), _humaneval),
    (("task_id", "text", "code", "test_list"), _mbpp),
    (("task_id", "prompt", "code", "test_list"), _mbpp),
    (("key", "prompt", "instruction_id_list", "kwargs"), _ifeval),
    (("prompt", "reward_model"), _verl),
    (("problem", "answer"), _competition),
    (("problem", "solution"), _competition),
    (("Problem", "Answer"), _competition),
)
"""The first whose fields a row has."""


def _plain(answer: Any) -> Any:
    """142.0 and "073" as "142" and "73"; all else as it is."""
    text = str(answer) if isinstance(answer, int | float) else answer
    if isinstance(text, str):
        if match := _WHOLE.fullmatch(text):
            text = match[1]
        return str(int(text)) if text.isascii() and text.isdigit() else text
    return json.loads(json.dumps(answer))


def _called(tests: Sequence[Any]) -> str:
    """The function that all tests call, the first of them if there are several."""
    known = set(dir(builtins))
    common: dict[str, None] | None = None
    for test in tests:
        try:
            nodes = list(ast.walk(ast.parse(str(test))))
        except (SyntaxError, ValueError):
            return ""
        calls = (n.func for n in nodes if isinstance(n, ast.Call))
        names = [f.id for f in calls if isinstance(f, ast.Name) and f.id not in known]
        common = dict.fromkeys(n for n in (common or names) if n in names)
    return next(iter(common or ()), "")
