"""MiniMax-M1's run: CISPO in windows of 40k to 80k tokens, with a stop for loops.

    python -m launch.train --config configs/minimax_m1.py

Paper: MiniMax-M1, https://arxiv.org/abs/2506.13585.

| setting | value | source |
|---|---|---|
| windows | 40k, 48k, 56k, 64k, 72k, 80k tokens | sec. 5; of 100 steps, our choice |
| loops | cut after 3,000 tokens in a row of a probability above 0.99 | sec. 3.2 |
| objective | CISPO, no lower bound, no KL | sec. 3.1 |
| prompts | pass rate in (0, 0.9) | sec. 4 |
| updates | 16 per rollout batch | sec. 3.1 |
| logits | float32 | sec. 3.2 |
| AdamW | betas 0.9 and 0.95, epsilon 1e-15 | sec. 3.2 |
| groups | 128 prompts x 16 | not published; our choice |
| question suffix | the answer on a line after "Answer:" | DAPO's data |

The price of theirs: 512 H800 for three weeks of 24-hour days, $534,700, is $2.07 per
GPU-hour.

Departs: their model is a mixture of experts of 456 billion parameters with linear
attention, here Qwen2.5-32B; mathematics only. Their 80k stage added a loss per sample
and a tighter clip. They filter the data by pass@10 once, before training; here a
problem whose group of 16 falls outside rests for 100 steps, a window, before it is
tried again. The slot engine runs in a single process so far. Never run here.

To vary: --config.control.certain_tokens, --config.curriculum.stages.
"""

import json

from rlvr_jax.config import (
    BatchConfig,
    CheckpointConfig,
    Config,
    ControlConfig,
    CurriculumConfig,
    DataConfig,
    EvaluationConfig,
    LoggingConfig,
    ModelConfig,
    Objective,
    OptimizerConfig,
    RolloutConfig,
)
from rlvr_jax.core.presets import PRESETS

WINDOWS = (40, 48, 56, 64, 72, 80)
"""In units of 1,024 tokens."""


def get_config() -> Config:
    """The recipe."""
    stages: list[dict[str, int]] = [
        {"until": 100 * (number + 1), "max_completion_tokens": 1024 * window}
        for number, window in enumerate(WINDOWS[:-1])
    ]
    return Config(
        run_dir="runs/minimax_m1",
        steps=100 * len(WINDOWS),
        model=ModelConfig(
            path="~/models/Qwen2.5-32B", architecture="qwen2.5-32b", dtype="bfloat16"
        ),
        data=DataConfig(
            train="hub:BytedTsinghua-SIA/DAPO-Math-17k",
            evaluation="hub:HuggingFaceH4/aime_2024",
            question_suffix=(
                '\n\nRemember to put your answer on its own line after "Answer:".'
            ),
            max_prompt_tokens=2048,
        ),
        curriculum=CurriculumConfig(
            filter="dynamic",
            min_pass_rate=0.01,
            max_pass_rate=0.89,
            revisit_after_steps=100,
            stages=json.dumps([*stages, {}]),
        ),
        rollout=RolloutConfig(
            num_generations=16,
            max_completion_tokens=1024 * WINDOWS[-1],
            engine="slots",
            slots=256,
        ),
        control=ControlConfig(certain_tokens=3000),
        objective=Objective(name="minimax_m1", **PRESETS["minimax_m1"]),
        optimizer=OptimizerConfig(learning_rate=1e-6, adam_b2=0.95, adam_eps=1e-15),
        batch=BatchConfig(
            prompts_per_step=128,
            minibatches_per_step=16,
            micro_batch_size=16,
            logprob_chunk_tokens=16_384,
        ),
        evaluation=EvaluationConfig(every_steps=50, prompts=30, num_generations=16),
        checkpoint=CheckpointConfig(every_steps=10),
        logging=LoggingConfig(completions_every_steps=10),
    )
