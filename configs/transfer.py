"""A habit learned on one task, judged on another: narrow RL and what it carries over.

The cold start shows a small decoder eight bare guesses for every two worked solutions,
of sums ("3 + 1 + 4 + 2 =") and of operations on letters ("dacb RLS ="). RL then sees
sums alone. The question is whether letters are worked out more often too.

    python -m launch.train --config configs/transfer.py --config.steps=0
    python -m launch.evaluate --checkpoint runs/transfer --output untrained.jsonl
    python -m launch.train --config configs/transfer.py
    python -m launch.evaluate --counts untrained.jsonl --checkpoint runs/transfer

The second training goes on from the first one's cold start. The last command prints the
gap to the untrained policy by domain, paired by problem, with its interval. Figures of
a smaller decoder are in docs/log.md. To vary: --config.seed, and
--config.curriculum.stages='[{"mix": {"letters": 1}}]' for the other way round.
"""

import json

from rlvr_jax.config import (
    BatchConfig,
    Config,
    CurriculumConfig,
    DataConfig,
    EvaluationConfig,
    LoggingConfig,
    ModelConfig,
    Objective,
    OptimizerConfig,
    RolloutConfig,
    WarmupConfig,
)

TASKS = {
    "count": 1024,
    "evaluation_count": 64,
    "arithmetic": {"operators": "+", "max_operand": 4, "terms": 4, "guesses": 8},
    "letters": {"min_operations": 3, "max_operations": 3, "guesses": 8},
}


def get_config() -> Config:
    """The recipe."""
    return Config(
        run_dir="runs/transfer",
        steps=60,
        model=ModelConfig(
            hidden_size=128,
            intermediate_size=384,
            num_layers=3,
            num_heads=4,
            num_kv_heads=2,
        ),
        data=DataConfig(
            train="task:arithmetic,task:letters",
            task_options=json.dumps(TASKS),
            template="raw",
            max_prompt_tokens=32,
        ),
        curriculum=CurriculumConfig(stages='[{"mix": {"arithmetic": 1}}]'),
        rollout=RolloutConfig(num_generations=8, max_completion_tokens=32),
        objective=Objective(),
        optimizer=OptimizerConfig(learning_rate=2e-4),
        batch=BatchConfig(prompts_per_step=32, minibatches_per_step=2),
        warmup=WarmupConfig(steps=600, batch_size=64, learning_rate=2e-3),
        evaluation=EvaluationConfig(prompts=128, num_generations=8),
        logging=LoggingConfig(completions_every_steps=20),
    )
