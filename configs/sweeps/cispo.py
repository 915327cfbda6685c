"""DAPO against CISPO: how many steps does each take to DAPO's final score?

    python -m launch.sweep --config configs/sweeps/cispo.py
    python -m launch.report runs/sweeps/cispo

The rows differ in the loss alone: a clip that drops tokens, or a bounded weight that
drops none. Dynamic sampling and the soft overlong penalty are in both, and each rollout
batch makes 16 updates, as published; only from the second on is there anything to clip.
MiniMax-M1 (https://arxiv.org/abs/2506.13585, sec. 3.1) has CISPO at DAPO's score on
AIME 2024 in half of its steps, with Qwen2.5-32B. The column "steps to DAPO" is our
measure of that. On a CPU the rows train the small decoder of
configs/sweeps/dapo_ablation.py; the rows of the 32B recipe, for a pod:

    python -m launch.sweep --config configs/sweeps/cispo.py \\
        --base configs/dapo_qwen32b.py --config.evaluation.every_steps=20

Never run here in full; rlvr_jax/toys/strategies.py has a toy of it. To vary: --seeds,
--config.steps, --config.batch.minibatches_per_step.
"""

from rlvr_jax.config import (
    BatchConfig,
    CheckpointConfig,
    Config,
    CurriculumConfig,
    DataConfig,
    EvaluationConfig,
    LoggingConfig,
    ModelConfig,
    Objective,
    OptimizerConfig,
    RewardConfig,
    RolloutConfig,
    WarmupConfig,
)
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.sweeps import Row, Sweep

BUFFER_SHARE = 0.2
"""Of the longest completion: 4,096 of 20,480 tokens in DAPO's paper."""
LOSS = ("surrogate", "epsilon_low", "epsilon_high")


def get_sweep(config: Config) -> Sweep:
    """The two rows, each with all settings of its loss written out."""
    tokens = round(BUFFER_SHARE * config.rollout.max_completion_tokens)
    both = {
        "curriculum.filter": "dynamic",
        "objective.overlong_buffer_tokens": tokens,
    }
    rows = []
    for name in ("DAPO", "CISPO"):
        objective = Objective(**PRESETS[name.lower()])
        loss = {f"objective.{each}": getattr(objective, each) for each in LOSS}
        rows.append(Row(name, both | loss))
    return Sweep(
        rows=rows,
        seeds=range(3),
        watched=("clip/high", "entropy/mean", "completion/length_mean"),
        steps_to="DAPO",
        # The cold start imitates solutions that are longer than the limit.
        start_settings={"rollout.max_completion_tokens": 44},
    )


def get_config() -> Config:
    """The base recipe of both rows."""
    return Config(
        run_dir="runs/cispo/base",
        steps=60,
        model=ModelConfig(
            hidden_size=64,
            intermediate_size=192,
            num_layers=2,
            num_heads=4,
            num_kv_heads=2,
        ),
        data=DataConfig(
            train="task:arithmetic",
            task_options=(
                '{"operators": "+", "max_operand": 4, "terms": 4, "guesses": 8, '
                '"twice": 1}'
            ),
            template="raw",
            max_prompt_tokens=24,
        ),
        curriculum=CurriculumConfig(filter="dynamic"),
        rollout=RolloutConfig(num_generations=8, max_completion_tokens=36),
        reward=RewardConfig(workers=1, timeout_s=20.0),
        objective=Objective(),
        optimizer=OptimizerConfig(learning_rate=3e-4),
        batch=BatchConfig(prompts_per_step=16, minibatches_per_step=16),
        warmup=WarmupConfig(steps=500, batch_size=64, learning_rate=3e-3),
        evaluation=EvaluationConfig(every_steps=5, prompts=64, num_generations=8),
        checkpoint=CheckpointConfig(every_steps=20, export=False),
        logging=LoggingConfig(
            completions_every_steps=20, tensorboard=False, report=False
        ),
    )
