"""Dr. GRPO on Qwen2.5-Math-7B: a small recipe of R1-Zero's kind.

    python -m launch.train --config configs/dr_grpo_qwen7b.py      # once per host

Paper: Understanding R1-Zero-Like Training, https://arxiv.org/abs/2503.20783; 43.3 on
AIME 2024 after about 27 hours on 8 A100.

| setting | value | source |
|---|---|---|
| advantage, aggregation | centred, not divided; a constant divisor | sec. 3 |
| groups | 128 prompts x 8 | README of sail-sg/understand-r1-zero |
| updates | 8 of 128 completions, one epoch | README |
| tokens | 3,000, prompts up to 1,024 | README |
| sampling | temperature 1, top-p 1 | README |
| KL | none | README |
| AdamW | 1e-6, constant | README |
| data | MATH, levels 3 to 5 | README |
| 400 steps | not published | ours |

128 prompts are the README's `rollout_batch_size`, by its buffer of 1,024 completions.
Departs: evaluation samples 8 completions, theirs is greedy. Never run here.

To vary: --config.objective=grpo --config.objective.beta=0, for the bias that is
repaired; --config.data.template=raw.
"""

from rlvr_jax.config import (
    BatchConfig,
    CheckpointConfig,
    Config,
    DataConfig,
    EvaluationConfig,
    MeshConfig,
    ModelConfig,
    Objective,
    OptimizerConfig,
    RolloutConfig,
)
from rlvr_jax.core.presets import PRESETS


def get_config() -> Config:
    """The recipe."""
    return Config(
        run_dir="runs/dr_grpo_qwen7b",
        steps=400,
        model=ModelConfig(path="~/models/Qwen2.5-Math-7B", dtype="bfloat16"),
        data=DataConfig(
            train="hub:nlile/hendrycks-MATH-benchmark",
            evaluation="hub:HuggingFaceH4/aime_2024",
            question_field="problem",
            keep='{"level": [3, 4, 5]}',
            system_prompt=(
                "Please reason step by step, and put your final answer within "
                "\\boxed{}."
            ),
            max_prompt_tokens=1024,
        ),
        rollout=RolloutConfig(num_generations=8, max_completion_tokens=3000),
        objective=Objective(name="dr_grpo", **PRESETS["dr_grpo"]),
        optimizer=OptimizerConfig(learning_rate=1e-6),
        batch=BatchConfig(
            prompts_per_step=128,
            minibatches_per_step=8,
            micro_batch_size=16,
            logprob_chunk_tokens=8192,
        ),
        evaluation=EvaluationConfig(every_steps=50, prompts=30, num_generations=8),
        mesh=MeshConfig(shape=(1, -1, 1)),
        checkpoint=CheckpointConfig(every_steps=5),
    )
