"""Groups of K completions with partial rollouts that pause at a share, after Kimi K3.

    python -m launch.train --config configs/kimi_k3_partial.py

Source: Kimi K3 technical report (2026), through a survey that leaves its formulas out
(docs/papers.md).

| setting | value | source |
|---|---|---|
| groups | K completions of each of N prompts | reported; 64 prompts x 16 is ours |
| the others pause | once a share lambda of N x K is done | reported; 0.75 is ours |
| paused rollouts | go on first in the next step | reported |
| advantage | reward less the group's mean, no std | reported |
| ratio to the sampler | outside of a band no gradient | reported; the band is ours |
| tokens | up to 1M of context | reported; 32,768 here |
| waiting | at most 1 batch, 4 steps | not reported; ours |
| AdamW | 1e-6 | not reported; ours |
| question suffix | the answer on a line after "Answer:" | DAPO's data |

`rollout.token_budget` is the whole length of a completion: only the share pauses.

Departs: mathematics with one verifier and Qwen2.5-7B, where theirs is an agent with
sandboxes that pause and resume; their regularisation per token against samples of far
older policies is not here (no formula); no quantisation. The slot engine runs in a
single process so far, so this wants one machine with all of its devices. Never run
here.

To vary: --config.rollout.pause_share, --config.rollout.max_group_age.
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
        run_dir="runs/kimi_k3_partial",
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
            slots=256,
            token_budget=32_768,
            pause_share=0.75,
            waiting_batches=1,
            max_group_age=4,
        ),
        objective=Objective(name="kimi_k3", **PRESETS["kimi_k3"]),
        optimizer=OptimizerConfig(learning_rate=1e-6),
        batch=BatchConfig(prompts_per_step=64, micro_batch_size=16),
        evaluation=EvaluationConfig(every_steps=50, prompts=30, num_generations=8),
        checkpoint=CheckpointConfig(every_steps=5),
        logging=LoggingConfig(completions_every_steps=5),
    )
