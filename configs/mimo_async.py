"""Asynchronous GRPO with partial rollouts, in the sizes reported of MiMo-V2.6.

    python -m launch.train --config configs/mimo_async.py

Source: MiMo-V2.6 technical report (2026), through a survey that leaves its formulas
out; docs/papers.md.

| setting | value | source |
|---|---|---|
| groups | 1,568 prompts x 16 | reported |
| completions | partial rollouts | reported; 8,192 tokens a step is our choice |
| versions | at most 4 behind | reported; here 1 (sampling ahead) + 3 (waiting) |
| ratio | to the sampler, bands by the advantage's sign | reported; bands ours |
| tokens | 32,768 | not reported; our choice |
| AdamW | 1e-6 | not reported; our choice |
| question suffix | the answer on a line after "Answer:" | DAPO's data |

Departs: mathematics with one verifier and Qwen2.5-7B, where theirs is an agent of
several tools. The slot engine and staleness run in a single process so far, so this
wants one machine with all of its devices; by the plan, its 1,024 slots take 476 GiB of
each of four v5p chips at full length, so lower rollout.slots or the tokens to what
yours has. Never run here.

To vary: --config.rollout.token_budget, --config.rollout.overdue=drop.
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
    RolloutConfig,
)
from rlvr_jax.core.presets import PRESETS


def get_config() -> Config:
    """The recipe."""
    return Config(
        run_dir="runs/mimo_async",
        steps=500,
        model=ModelConfig(
            path="~/models/Qwen2.5-7B-Instruct",
            architecture="qwen2.5-7b",
            dtype="bfloat16",
        ),
        data=DataConfig(
            train="hub:BytedTsinghua-SIA/DAPO-Math-17k",
            evaluation="hub:HuggingFaceH4/aime_2024",
            question_suffix=(
                '\n\nRemember to put your answer on its own line after "Answer:".'
            ),
            max_prompt_tokens=2048,
        ),
        rollout=RolloutConfig(
            num_generations=16,
            max_completion_tokens=32_768,
            engine="slots",
            slots=1024,
            staleness=1,
            token_budget=8192,
            waiting_batches=1,
            max_group_age=3,
        ),
        objective=Objective(name="mimo", **PRESETS["mimo"]),
        optimizer=OptimizerConfig(learning_rate=1e-6),
        batch=BatchConfig(
            prompts_per_step=1568, micro_batch_size=16, logprob_chunk_tokens=16_384
        ),
        evaluation=EvaluationConfig(every_steps=50, prompts=30, num_generations=8),
        checkpoint=CheckpointConfig(every_steps=10),
        logging=LoggingConfig(completions_every_steps=10),
    )
