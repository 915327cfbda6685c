"""Names of verifiers: what they find, and what is said of those that find nothing."""

import pytest

from rlvr_jax.verifiers import registry
from rlvr_jax.verifiers.base import Sample, Status, apply

REFERENCES = {
    "code": {"test_list": ["assert f(1) == 2"]},
    "code:held_out": {"test_list": ["assert f(1) == 2"], "held_out": ["assert f(2)"]},
    "countdown": {"target": 6, "numbers": [1, 2, 3]},
    "instructions": {"instruction_id": "punctuation:no_comma"},
    "navigation": {
        "size": 2,
        "start": [1, 1],
        "goal": [2, 2],
        "blocked": [],
        "facing": "north",
        "actions": "absolute",
    },
}
OPTIONAL = {"gym"}
"""Of a package that need not be there; tests/data_layer/test_gym.py has them."""


@pytest.mark.parametrize("name", sorted(set(registry.BUILT_IN) - OPTIONAL))
def test_every_registered_name_is_a_verifier(name):
    """On an empty completion each gives a verdict and none raises."""
    answer = REFERENCES.get(name, "6")
    verdict = apply(registry.resolve(name), Sample(name, "", answer))
    assert verdict.status in (Status.WRONG, Status.UNPARSEABLE)


def test_a_function_of_a_file(tmp_path, monkeypatch):
    """Relative to the current directory, with its neighbours importable, run once."""
    (tmp_path / "neighbour_of_rewards.py").write_text("VALUE = 7\n")
    (tmp_path / "rewards.py").write_text(
        "from neighbour_of_rewards import VALUE\n"
        "def check(sample): return sample.answer == VALUE\n"
        "count = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    check = registry.resolve("rewards.py:check")
    assert check(Sample("", "", 7)) is True
    assert registry.resolve(f"{tmp_path}/rewards.py:check") is check


def test_a_function_of_a_module():
    name = "rlvr_jax.verifiers.exact:verify"
    assert registry.resolve(name) is registry.resolve("exact")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mth", "did you mean 'math'"),
        ("format:thinking", "did you mean 'format:think'"),
        ("nothing_like_it", "path/file.py:function"),
        ("missing.py:check", "there is no file"),
        ("rewards.py:chek", "did you mean 'check'"),
        ("rewards.py:count", "is int, not a function"),
        ("rewards.py:reads_minds", "reads one of answer, completion"),
        ("broken.py:check", "cannot be run: ZeroDivisionError"),
        ("no_such_package.module:check", "cannot import 'no_such_package.module'"),
        ("rlvr_jax.verifiers.exact:verfy", "did you mean 'verify'"),
    ],
)
def test_a_name_that_finds_nothing_says_why(tmp_path, monkeypatch, name, message):
    (tmp_path / "rewards.py").write_text(
        "def check(sample): return True\ncount = 3\n"
        "def reads_minds(sample): return True\nreads_minds.reads = 'minds'\n"
    )
    (tmp_path / "broken.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        registry.resolve(name)
