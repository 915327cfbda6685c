"""What a user gets wrong is one clear error before anything compiles."""

import pytest

from tests.end_to_end import command


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--config.objective.epsilon_hi=0.3"],
            "unknown setting objective.epsilon_hi; did you mean "
            "objective.epsilon_high?",
        ),
        (["--config.steps=many"], "steps"),
        (
            ["--config.objective.beta=0", "--config.objective.kl_estimator=k2"],
            "objective.kl_estimator='k2' would be ignored, since objective.beta is 0",
        ),
        (
            ["--config.batch.prompts_per_step=9"],
            "batch.prompts_per_step=9 is not a multiple of "
            "batch.minibatches_per_step=2",
        ),
        (
            ["--config.mesh.shape=(3,1,1)"],
            "mesh.shape=(3, 1, 1)",
        ),
        (
            ["--config.mesh.rollout_shape=(1,3,1)"],
            "mesh.rollout_shape=(1, 3, 1)",
        ),
        (
            ["--config.data.train=absent.jsonl", "--config.data.task_options={}"],
            "absent.jsonl",
        ),
        (
            ["--config.objective=vc_ppo", "--config.critic.path=absent"],
            "absent/config.json does not exist",
        ),
        (
            [
                "--config.curriculum.stages="
                '[{"until": 1, "max_completion_tokens": 2}, {}]',
                "--config.objective.overlong_buffer_tokens=3",
            ],
            "overlong_buffer_tokens=3 exceeds max_completion_tokens=2 of stage 1",
        ),
        (["--config.reward.verifier=maths"], "did you mean"),
        (["--config.rollout.stop=('ab',)"], "rollout.stop"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_settings(tmp_path, flags, message):
    assert_refused(command.run(tmp_path / "run", *flags, expect=2), message)


def test_bad_data_row(tmp_path):
    """The error names file and line."""
    data = tmp_path / "rows.jsonl"
    data.write_text('{"question": "1 + 1 =", "answer": "2"}\n{"question": "2 + 2 ="}\n')
    flags = [f"--config.data.train={data}", "--config.data.task_options={}"]
    printed = command.run(tmp_path / "run", *flags, expect=2)
    assert_refused(printed, "rows.jsonl")
    assert "line 2" in printed or "rows.jsonl:2" in printed


def test_references_that_do_not_verify(tmp_path):
    rows = "".join(
        f'{{"question": "{i} + 1 =", "answer": "{i}", "verifier": "countdown"}}\n'
        for i in range(20)
    )
    (tmp_path / "rows.jsonl").write_text(rows)
    flags = [
        f"--config.data.train={tmp_path / 'rows.jsonl'}",
        "--config.data.task_options={}",
        "--config.warmup.steps=0",
        "--config.warmup.batch_size=64",
        "--config.warmup.learning_rate=0.001",
    ]
    printed = command.run(tmp_path / "run", *flags, expect=2)
    assert_refused(printed, "references do not verify against themselves")


def test_unreadable_model_directory(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    new = ("hidden_size=128", "intermediate_size=384", "num_layers=4", "num_heads=4")
    flags = [f"--config.model.{value}" for value in (*new, "num_kv_heads=2")]
    printed = command.run(
        tmp_path / "run", f"--config.model.path={model}", *flags, expect=2
    )
    assert_refused(printed, str(model))


def assert_refused(printed: str, message: str) -> None:
    assert message in printed, printed
    assert "error:" in printed
    assert "Traceback" not in printed, printed
    assert "1/6 steps" not in printed
