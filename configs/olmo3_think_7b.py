"""OlmoRL with the sizes of Olmo 3 Think 7B. For plans: see below before running it.

    python -m launch.plan --config configs/olmo3_think_7b.py --topology v5p:4x4x4
    python -m launch.train --config configs/olmo3_think_7b.py      # with another model

Paper: Olmo 3, https://arxiv.org/abs/2512.13961; scripts/train/olmo3 of
https://github.com/allenai/open-instruct.

| setting | value | source |
|---|---|---|
| groups | 64 prompts x 8 | scripts |
| tokens | 32,768 | scripts |
| reward | 10, and 0 | open-instruct's verification_reward |
| advantage | centred, not divided | scripts |
| clip | 0.2 / 0.272, token mean, no KL | scripts |
| sampler's log-probs | ratio to the trainer's cut at 2 | scripts |
| groups of equal rewards | replaced by more prompts (active sampling) | scripts |
| AdamW | 1e-6 | scripts of the 7B; 2e-6 for 32B |
| question suffix | the answer on a line after "Answer:" | DAPO's data |

Departs: **the decoder does not compute Olmo 3** (norms after the blocks, windows in
three layers of four), so a run needs another model: --config.model.path=DIR
--config.model.architecture=qwen3-8b. The plan counts full attention in every layer.
Mathematics only, where theirs mixes code, instructions and chat.

Its plan on v5p:4x4x4, mesh (1, 8, 8), by the estimate (`--nocompile`):

    memory of 95 GiB      train 24.6, prefill 3.2, decode 35.0
    FLOPs of a step      2.31e+18, useful 1.57e+18
    time of a step       2,717 s: sampling 2,566, learning 151
    cost of a step       48.3 chip-hours, $202.90

All completions at their limit, 40 % of peak FLOPs, 70 % of bandwidths: 1000 steps would
take 31.5 days. Never run here.

To vary: --config.curriculum.filter=dynamic, --config.rollout.num_generations.
"""

from rlvr_jax.config import (
    BatchConfig,
    CheckpointConfig,
    Config,
    CurriculumConfig,
    DataConfig,
    EvaluationConfig,
    LoggingConfig,
    MeshConfig,
    ModelConfig,
    Objective,
    OptimizerConfig,
    RewardConfig,
    RolloutConfig,
)
from rlvr_jax.core.presets import PRESETS


def get_config() -> Config:
    """The recipe."""
    return Config(
        run_dir="runs/olmo3_think_7b",
        steps=1000,
        model=ModelConfig(
            path="~/models/Olmo-3-7B-Think-DPO",
            architecture="olmo3-7b",
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
        curriculum=CurriculumConfig(filter="active"),
        rollout=RolloutConfig(
            num_generations=8, max_completion_tokens=32_768, prompts_at_once=16
        ),
        reward=RewardConfig(correct=10.0),
        objective=Objective(name="olmo3", **PRESETS["olmo3"]),
        optimizer=OptimizerConfig(learning_rate=1e-6),
        batch=BatchConfig(
            prompts_per_step=64, micro_batch_size=16, logprob_chunk_tokens=16_384
        ),
        evaluation=EvaluationConfig(every_steps=50, prompts=30, num_generations=8),
        mesh=MeshConfig(shape=(1, 8, 8)),
        checkpoint=CheckpointConfig(every_steps=5),
        logging=LoggingConfig(completions_every_steps=5),
    )
