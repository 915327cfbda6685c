"""A run folder takes the run that made it, and no other."""

import json

import pytest

from rlvr_jax import config as config_lib
from rlvr_jax.config import Config
from rlvr_jax.data.rows import Problem
from rlvr_jax.train.resume import (
    check_not_lost,
    check_same_problems,
    check_same_run,
    check_steps,
    fingerprint,
)
from rlvr_jax.validate import ConfigError


@pytest.fixture
def folder(tmp_path):
    """The folder of a run with the default settings."""
    config_lib.save(Config(), tmp_path / "config.json")
    return tmp_path


def test_a_new_folder_is_made(tmp_path):
    folder = tmp_path / "runs" / "first"
    check_same_run(Config(), folder)
    assert folder.is_dir()
    assert not list(folder.iterdir())


def test_the_same_settings_continue(folder):
    check_same_run(Config(), folder)


def test_changed_settings_are_listed_with_both_values(folder):
    changed = Config(seed=5)
    changed.objective.epsilon_high = 0.4
    changed.mesh.shape = (2, 1, 1)  # free
    with pytest.raises(ConfigError) as caught:
        check_same_run(changed, folder)
    assert str(caught.value) == (
        f"run_dir={folder} holds a run with other settings:\n"
        "  objective.epsilon_high: 0.28 there, 0.4 now\n"
        "  seed: 0 there, 5 now\n"
        "Give those values to continue it, or choose another --config.run_dir."
    )


def test_what_does_not_change_the_learning_may_change(folder):
    free = Config(run_dir="elsewhere")
    free.logging.report = False
    free.checkpoint.every_steps = 3
    free.evaluation.prompts = 8
    free.mesh.shape = (2, 2, 2)
    free.reward.execution = "callback"
    free.reward.workers = 3
    free.reward.timeout_s = 9.0
    free.reward.max_failure_rate = 0.5
    free.reward.check_references = 0
    free.audit.verifier = "exact"
    free.judge.url = "http://elsewhere:8000/v1"
    free.judge.retries = 7
    free.judge.price_prompt = 0.5
    free.batch.micro_batch_size = 4
    free.batch.logprob_chunk_tokens = 64
    free.batch.packing = True
    free.model.remat = "none"
    free.rollout.prompts_at_once = 4
    free.replay.save_every = 5
    check_same_run(free, folder)


@pytest.mark.parametrize(
    ("section", "field", "value"),
    [
        ("reward", "correct", 2.0),
        ("reward", "parts", "answer, 0.1*ended"),
        ("noise", "false_positive_rate", 0.1),
        ("judge", "model", "another"),
        ("reward", "verifier", "exact"),
        ("batch", "prompts_per_step", 16),
        ("batch", "epochs_per_step", 2),
        ("model", "dtype", "bfloat16"),
        ("rollout", "temperature", 0.9),
        ("optimizer", "learning_rate", 1e-3),
        ("warmup", "steps", 3),
        ("data", "shuffle", False),
    ],
)
def test_what_changes_the_learning_may_not(folder, section, field, value):
    config = Config()
    setattr(getattr(config, section), field, value)
    with pytest.raises(ConfigError, match=rf"\n  {section}\.{field}: .* now\n"):
        check_same_run(config, folder)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_more_steps_unless_the_learning_rate_depends_on_them(tmp_path, schedule):
    config = Config(steps=100)
    config.optimizer.schedule = schedule
    config_lib.save(config, tmp_path / "config.json")
    config.steps = 200
    if schedule == "constant":
        check_same_run(config, tmp_path)
        return
    with pytest.raises(ConfigError, match=r"\n  steps: 100 there, 200 now\n"):
        check_same_run(config, tmp_path)


def test_more_steps_of_batches_sampled_ahead_are_another_run(tmp_path):
    """The last batches were not begun beyond the end: in a longer run they are."""
    config = Config(steps=100)
    config.rollout.staleness = 1
    config_lib.save(config, tmp_path / "config.json")
    config.steps = 200
    with pytest.raises(ConfigError, match=r"\n  steps: 100 there, 200 now\n"):
        check_same_run(config, tmp_path)


def test_evaluations_may_not_change_where_they_decide_on_resets(tmp_path):
    config = Config()
    config.objective.reset_after_evaluations = 2
    config_lib.save(config, tmp_path / "config.json")
    config.evaluation.prompts = 8
    with pytest.raises(ConfigError, match=r"evaluation.prompts: 64 there, 8 now"):
        check_same_run(config, tmp_path)


def test_fewer_steps_than_were_done_are_an_error():
    check_steps(20, None)
    check_steps(20, 20)
    with pytest.raises(ConfigError, match="steps=10, and the run has done 20: give 20"):
        check_steps(10, 20)


def test_a_setting_that_the_older_run_did_not_know_is_listed(folder):
    saved = json.loads((folder / "config.json").read_text())
    del saved["objective"]["beta"]
    saved["objective"]["gone"] = 3
    (folder / "config.json").write_text(json.dumps(saved))
    with pytest.raises(ConfigError) as caught:
        check_same_run(Config(), folder)
    assert "\n  objective.beta: None there, 0.0 now\n" in str(caught.value)
    assert "\n  objective.gone: 3 there, None now\n" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b'{"seed": ', b"\xff\xfe{}", b"[1]", b"3"])
def test_an_unreadable_config_says_so(folder, content):
    (folder / "config.json").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        check_same_run(Config(), folder)
    message = str(caught.value)
    assert message.startswith(f"run_dir={folder}: config.json is not readable (")
    assert message.endswith("remove the folder or choose another --config.run_dir.")


def problems(count=3, **changes):
    fields = {"answer": "2", "verifier": "math", "meta": {}} | changes
    return [Problem(id=f"p-{i}", question=f"{i} + 1 =", **fields) for i in range(count)]


def test_what_else_a_row_says_belongs_to_the_problem():
    """Levels, domains and worked solutions decide on what is drawn and paid."""
    changed = problems(meta={"level": 2})
    assert fingerprint(changed)["sha256"] != fingerprint(problems())["sha256"]


def test_the_same_problems_continue():
    check_same_problems(problems(), json.loads(json.dumps(fingerprint(problems()))))
    check_same_problems(problems(), None)  # a checkpoint from before there was one


@pytest.mark.parametrize(
    ("now", "counts"),
    [
        (problems(2), "3 then, 2 now"),
        (problems(answer="3"), "3 both times, not the same"),
        (problems(verifier="exact"), "3 both times, not the same"),
        (problems()[::-1], "3 both times, not the same"),
    ],
    ids=["cut off", "answers", "verifier", "order"],
)
def test_other_problems_are_refused(now, counts):
    with pytest.raises(ConfigError) as caught:
        check_same_problems(now, fingerprint(problems()))
    assert f"changed since the checkpoint ({counts})" in str(caught.value)
    assert str(caught.value).startswith("data.train: ")


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ("spoilt_checkpoints/6-0", "spoilt_checkpoints/ holds some"),
        ("summary.json", "summary.json is written after the last one"),
        ("metrics.jsonl", "metrics.jsonl has 4 steps"),
    ],
)
def test_a_run_whose_checkpoints_are_gone_does_not_begin_again(
    tmp_path, trace, message
):
    """From step 0 it would erase the records of what it had learned."""
    (tmp_path / trace).parent.mkdir(exist_ok=True)
    (tmp_path / trace).write_text("".join(f'{{"step": {n}}}\n' for n in range(4)))
    check_not_lost(tmp_path, latest=6, every_steps=1)
    with pytest.raises(ConfigError, match=message) as caught:
        check_not_lost(tmp_path, latest=None, every_steps=1)
    assert "put the checkpoints back, or remove the folder" in str(caught.value)


@pytest.mark.parametrize("every_steps", [0, 2])
def test_a_run_killed_before_its_first_checkpoint_begins_again(tmp_path, every_steps):
    """Nothing is lost: the same steps are made again."""
    check_not_lost(tmp_path, latest=None, every_steps=every_steps)
    (tmp_path / "metrics.jsonl").write_text(
        "".join(f'{{"step": {n}}}\n' for n in range(4)) + '{"step": 4'
    )
    check_not_lost(tmp_path, latest=None, every_steps=every_steps)
