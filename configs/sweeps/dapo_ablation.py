"""DAPO's ablation: naive GRPO, then one more of its techniques per row.

    python -m launch.sweep --config configs/sweeps/dapo_ablation.py
    python -m launch.report runs/sweeps/dapo_ablation

On a CPU the rows train a decoder of 0.1 M parameters on sums of four numbers. Its cold
start shows eight bare guesses, one solution worked out and one worked out twice, which
mostly runs into the limit of 36 tokens; many groups are unanimous. The table stands
beside the paper's, of Qwen2.5-32B on AIME 2024 (avg@32, single runs):
https://arxiv.org/abs/2503.14476, table 1. The rows of the 32B recipe, for a pod:

    python -m launch.sweep --config configs/sweeps/dapo_ablation.py \\
        --base configs/dapo_qwen32b.py

Measured tables are in docs/log.md. To vary: --seeds, --rows, --config.steps.
"""

from rlvr_jax.config import (
    BatchConfig,
    CheckpointConfig,
    Config,
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
from rlvr_jax.sweeps import Row, Sweep

BUFFER_SHARE = 0.2
"""Of the longest completion: 4,096 of 20,480 tokens in the paper."""

LADDER = (
    ("naive GRPO", {}, 30.0),
    ("+ overlong filter", {"objective.overlong_filter": True}, 36.0),
    ("+ clip-higher", {"objective.epsilon_high": 0.28}, 38.0),
    ("+ soft overlong", {"objective.overlong_buffer_tokens": None}, 41.0),
    ("+ token-level loss", {"objective.loss_aggregation": "token_mean"}, 42.0),
    ("+ dynamic sampling (DAPO)", {"curriculum.filter": "dynamic"}, 50.0),
)
"""What each row adds to the one before it, and its figure in the paper."""

# Departs from the GRPO paper: no KL term in any row, as the ladder changes one thing at
# a time and DAPO has none.
NAIVE = {
    "objective.overlong_filter": False,
    "objective.epsilon_high": 0.2,
    "objective.overlong_buffer_tokens": 0,
    "objective.loss_aggregation": "sequence_mean",
    "curriculum.filter": "none",
}


def get_sweep(config: Config) -> Sweep:
    """The six rows, each with all five switches written out."""
    buffer = round(BUFFER_SHARE * config.rollout.max_completion_tokens)
    settings, rows = dict(NAIVE), []
    for name, added, paper in LADDER:
        settings |= {k: buffer if v is None else v for k, v in added.items()}
        rows.append(Row(name, dict(settings), paper=paper))
    return Sweep(
        rows=rows,
        seeds=range(5),
        watched=(
            "completion/truncated_share",
            "completion/length_mean",
            "advantage/zero_share",
            "entropy/mean",
        ),
        reference=("DeepSeek-R1-Zero-Qwen-32B", 47.0),
        paper="AIME 2024 avg@32, Qwen2.5-32B",
        # The cold start imitates solutions that are longer than the limit.
        start_settings={"rollout.max_completion_tokens": 44},
    )


def get_config() -> Config:
    """The base recipe of all rows; its objective is DAPO's."""
    return Config(
        run_dir="runs/dapo_ablation/base",
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
        rollout=RolloutConfig(num_generations=8, max_completion_tokens=36),
        reward=RewardConfig(workers=1, timeout_s=20.0),
        objective=Objective(),
        optimizer=OptimizerConfig(learning_rate=3e-4),
        batch=BatchConfig(prompts_per_step=16, minibatches_per_step=4),
        warmup=WarmupConfig(steps=500, batch_size=64, learning_rate=3e-3),
        evaluation=EvaluationConfig(prompts=64, num_generations=8),
        checkpoint=CheckpointConfig(every_steps=20, export=False),
        logging=LoggingConfig(
            completions_every_steps=20, tensorboard=False, report=False
        ),
    )
