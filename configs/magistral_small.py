"""Magistral's reinforcement learning on Mistral Small 24B.

    python -m launch.train --config configs/magistral_small.py     # once per host
    python -m launch.plan --config configs/magistral_small.py --topology v5p:4x4x4

Paper: Magistral, https://arxiv.org/abs/2506.10910. Magistral Small by this alone: 65.8
on AIME 2024 (pass@1), after a supervised start 70.7.

| setting | value | source |
|---|---|---|
| advantage | centred per group, divided by the std of the minibatch | sec. 2.1 |
| loss | summed over a group, divided by its tokens; no KL | sec. 2.1 |
| clip | 0.2 / 0.30 | sec. 5: Small |
| groups of equal rewards | left out | sec. 2.1 |
| reward | 0.1 format, then 0.9 answer and 0.1 language | sec. 2.2 |
| length penalty | down to -0.1 | sec. 2.2.3 |
| batch | 2,048 completions, one minibatch | sec. 4: the last of 8k, 4k, 2k |
| tokens | 16k, 24k, 32k | sec. 4 |
| group size 16, AdamW 1e-6, stages of 100 steps | not published | ours |

Departs: the batch is 2,048 from the start; the last stage has 30,720 tokens, as prompt
and completion share the model's 32,768 positions; one policy samples and learns in turn
where theirs runs asynchronously; mathematics only.

Its plan on v5p:4x4x4, mesh (1, 16, 4), by the estimate (`--nocompile`):

    memory of 95 GiB      train 24.2, prefill 6.4, decode 80.7
    FLOPs of a step      1.9e+19, useful 1.44e+19
    time of a step       4,198 s: sampling 2,943, learning 1,256
    cost of a step       74.6 chip-hours, $313.49

All completions at their limit, 40 % of peak FLOPs, 70 % of bandwidths: 300 steps would
take 14.6 days. Never run here.

To vary: --config.curriculum.stages, --config.objective.epsilon_high.
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

REWARD = (
    "0.1*format:think_boxed, 0.9*answer if format:think_boxed, "
    "0.1*language:same if format:think_boxed"
)


def get_config() -> Config:
    """The recipe."""
    magistral = PRESETS["magistral"] | {
        "epsilon_high": 0.3,
        "overlong_buffer_tokens": 4096,
        "overlong_penalty": 0.1,
    }
    return Config(
        run_dir="runs/magistral_small",
        steps=300,
        model=ModelConfig(
            path="~/models/Mistral-Small-24B-Instruct-2501",
            architecture="mistral-small-24b",
            dtype="bfloat16",
        ),
        data=DataConfig(
            train="hub:BytedTsinghua-SIA/DAPO-Math-17k",
            evaluation="hub:HuggingFaceH4/aime_2024",
            system_prompt=(
                "Think first, between <think> and </think>, in the language of the "
                "question. Then answer, with the result in \\boxed{}."
            ),
            max_prompt_tokens=2048,
        ),
        curriculum=CurriculumConfig(
            filter="dynamic",
            stages=(
                '[{"until": 100, "max_completion_tokens": 16384}, '
                '{"until": 200, "max_completion_tokens": 24576}, {}]'
            ),
        ),
        rollout=RolloutConfig(
            num_generations=16, max_completion_tokens=30_720, prompts_at_once=64
        ),
        reward=RewardConfig(parts=REWARD),
        objective=Objective(name="magistral", **magistral),
        optimizer=OptimizerConfig(learning_rate=1e-6),
        batch=BatchConfig(
            prompts_per_step=128, micro_batch_size=16, logprob_chunk_tokens=8192
        ),
        evaluation=EvaluationConfig(every_steps=50, prompts=30, num_generations=16),
        mesh=MeshConfig(shape=(1, 16, 4)),
        checkpoint=CheckpointConfig(every_steps=5),
        logging=LoggingConfig(completions_every_steps=5),
    )
