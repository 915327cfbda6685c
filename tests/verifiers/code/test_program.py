"""Where the program stands in a completion."""

import pytest

from rlvr_jax.verifiers.code import program

BLOCK = "```python\nx = 1\n```"
PROMPT = 'def f(x):\n    """Doubles x."""\n'


@pytest.mark.parametrize(
    ("completion", "code"),
    [
        ("x = 1", "x = 1"),
        ("\ufeffx = 1", "x = 1"),
        ("x = 1\r\ny = 2", "x = 1\ny = 2"),
        (f"So:\n{BLOCK}\nDone.", "x = 1\n"),
        (f"{BLOCK}\nBetter:\n```py\ny = 2\n```", "y = 2\n"),
        (f"{BLOCK}\nRun it:\n```bash\npython x.py\n```", "x = 1\n"),
        (f"{BLOCK}\nIt prints\n```\n1\n```", "x = 1\n"),
        ("So:\n```\nx = 1\n```", "x = 1\n"),
        ("So:\n~~~python\nx = 1\n~~~", "x = 1\n"),
        ("- a list\n  ```python\n  x = 1\n  ```", "  x = 1\n"),
        ("So:\n````python\nx = '''\n```\n'''\n````", "x = '''\n```\n'''\n"),
        ('"""Like\n```python\ny\n```\n"""\nx = 1', None),
        ("So:\n```python\nx = (\n```", "x = (\n"),
    ],
)
def test_found(completion, code):
    """The text if it is Python, else the last block marked so, else the last bare."""
    assert program.find(completion).sources == [code or completion]


@pytest.mark.parametrize(
    "completion",
    [
        "",
        " \n",
        "I do not know.",
        "So:\n```python\nx = 1",
        "```bash\nls\n```",
        "x = \0",
    ],
)
def test_none(completion):
    with pytest.raises(ValueError, match=r"Python|empty"):
        program.find(completion)


def test_a_text_that_goes_on_from_the_prompt():
    """A body belongs to the prompt's function; a whole function replaces its stub."""
    body = "    return 2 * x\n"
    assert program.find(body, PROMPT, "f").sources == [PROMPT + body]
    fenced = f"So:\n```python\n{body}```"
    assert program.find(fenced, PROMPT, "f").sources == [PROMPT + body]
    whole = "def f(x): return 2 * x"
    assert program.find(whole, PROMPT, "f") == ([PROMPT, whole], "f")


@pytest.mark.parametrize(
    "completion",
    ["```\n" * 50_000, "~~~x\n" * 50_000, "(" * 100_000, "x=" * 50_000, "`" * 100_000],
)
@pytest.mark.timeout(20)
def test_long_texts_are_read_in_no_time(completion):
    try:
        program.find(completion)
    except ValueError:
        pass
