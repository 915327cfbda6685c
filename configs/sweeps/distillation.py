"""RL, distillation and both, of one student from as many completions: which is ahead?

A claim about RL on a small model has to beat this: the same student, from the same
start, on as many completions of a teacher. Make student, teacher and its solutions,
then the table:

    python -m launch.train --config configs/quickstart.py \\
        --config.run_dir=runs/distillation/base --config.steps=0
    python -m launch.train --config configs/quickstart.py \\
        --config.run_dir=runs/distillation/teacher --config.seed=1
    python -m launch.demonstrate --checkpoint runs/distillation/teacher \\
        --output runs/distillation/solved.jsonl
    python -m launch.sweep --config configs/sweeps/distillation.py
    python -m launch.report runs/sweeps/distillation

The teacher is the quickstart's decoder after RL; take a better one if you have it. Each
row learns from steps x prompts_per_step x num_generations completions: sampled by the
student and rewarded, written by the teacher and imitated, sampled by the student and
corrected by the teacher, or half imitated and half rewarded. Published: 72.6 against
47.0 on AIME 2024 for distillation (Qwen2.5-32B), 65.4 against 65.8 and 70.7 for both
(Magistral Small); docs/papers.md has the table.

Never run here in full. To vary: --seeds, or `steps` in a recipe of your own by --base,
which keeps the rows equal (the flag --config.steps would not); its model.path is the
student, in a folder beside `teacher` and `solved.jsonl`.
"""

import pathlib
from typing import Any

from rlvr_jax.config import (
    BatchConfig,
    Config,
    DataConfig,
    EvaluationConfig,
    LoggingConfig,
    ModelConfig,
    Objective,
    OptimizerConfig,
    RolloutConfig,
)
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.sweeps import Row, Sweep

BATCH = 64
"""Solutions per step of imitation, or one step's completions where these are fewer."""
LEARNING_RATE = 1e-3
"""Of imitation."""


def get_sweep(config: Config) -> Sweep:
    """Four rows of equal numbers of completions."""
    folder = pathlib.Path(config.model.path).parents[1]
    solved = folder / "solved.jsonl"
    correction = {
        f"objective.{name}": value for name, value in PRESETS["opd"].items()
    } | {"model.reference_path": folder / "teacher" / "model"}
    half = config.steps // 2
    rows = [
        Row("RL"),
        Row("distillation", _imitation(config, solved, config.steps) | {"steps": 0}),
        Row("on-policy distillation", correction),
        Row(
            "distillation, then RL",
            _imitation(config, solved, half) | {"steps": config.steps - half},
        ),
    ]
    return Sweep(
        rows=rows, seeds=range(3), watched=("completion/length_mean", "entropy/mean")
    )


def _imitation(config: Config, solved: pathlib.Path, steps: int) -> dict[str, Any]:
    """A cold start on as many solutions as so many steps of RL have completions."""
    per_step = config.batch.prompts_per_step * config.rollout.num_generations
    size = min(BATCH, per_step)
    return {
        "data.train": solved,
        # The problems that every row is judged on.
        "data.evaluation": config.data.evaluation or config.data.train,
        "warmup.steps": steps * per_step // size,
        "warmup.batch_size": size,
        "warmup.learning_rate": LEARNING_RATE,
    }


def get_config() -> Config:
    """The base recipe: RL of the student for a quarter of the quickstart's steps."""
    return Config(
        run_dir="runs/distillation/rl",
        steps=16,
        model=ModelConfig(path="runs/distillation/base/model"),
        data=DataConfig(
            train="task:arithmetic",
            task_options=(
                '{"operators": "+", "max_operand": 4, "terms": 4, "guesses": 8}'
            ),
            template="raw",
            max_prompt_tokens=32,
        ),
        rollout=RolloutConfig(num_generations=8, max_completion_tokens=28),
        objective=Objective(),
        optimizer=OptimizerConfig(learning_rate=2e-4),
        batch=BatchConfig(prompts_per_step=32, minibatches_per_step=2),
        evaluation=EvaluationConfig(prompts=128, num_generations=8),
        logging=LoggingConfig(completions_every_steps=8, report=False),
    )
