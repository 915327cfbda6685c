"""What rewards that know nothing do, and why: ten arms and a verdict per hypothesis.

    python -m launch.sweep --config configs/sweeps/spurious_rewards.py
    python -m launch.report runs/sweeps/spurious_rewards

The small decoder of this file has seen its benchmark: the cold start shows the 64 sums
of known_sums.jsonl with their bare answers, beside other sums that it mostly guesses
and seldom works out, with a box around the answer. All arms are judged on those 64,
except for the two that take the 64 of fresh_sums.jsonl. The published gains, in points
on MATH-500 with Qwen2.5-Math-7B, are of Spurious Rewards,
https://arxiv.org/abs/2506.10947; the table's column "from start" is what compares with
them. For a real model the same arms:

    python -m launch.sweep --config configs/sweeps/spurious_rewards.py \\
        --base configs/gsm8k_smollm2.py --rows truth,random,format

Measured tables are in docs/log.md. To vary: --seeds, --rows, --config.steps.
"""

import pathlib

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

FOLDER = pathlib.Path(__file__).parent
KNOWN, FRESH_SUMS = (str(FOLDER / f"{name}_sums.jsonl") for name in ("known", "fresh"))
"""Two parts of the sums that training never holds; no sum of one is a sum of the other
in another order."""
RANDOM = {"noise.pays": "random"}
INCORRECT = {"noise.pays": "incorrect"}
FRESH = {"data.evaluation": FRESH_SUMS}


def get_sweep(config: Config) -> Sweep:
    """The arms; each differs from `truth` in what it pays, or in one thing more."""
    one = config.data.train.split(",")[0] + "[:1]"
    rows = [
        Row("truth", paper=29.1, role="truth"),
        Row("random", RANDOM, paper=21.4, role="random"),
        Row("format", {"noise.pays": "format"}, paper=13.8, role="format"),
        # A tenth of the problems has a label that is wrong about being wrong.
        Row(
            "incorrect",
            INCORRECT | {"noise.mislabelled_rate": 0.1},
            paper=24.1,
            role="incorrect",
        ),
        Row("majority", {"noise.pays": "majority"}, paper=27.1, role="majority"),
        Row("one-shot", {"data.train": one}, role="one_shot"),
        Row(
            "random, clipping off",
            # The default bound, which this surrogate does not read.
            RANDOM | {"objective.surrogate": "ratio", "objective.epsilon_high": 0.28},
            role="clip_off",
        ),
        Row("random, fresh problems", RANDOM | FRESH, role="fresh"),
        Row("truth, fresh problems", FRESH),
        Row("incorrect, labels verified again", INCORRECT, role="reverified"),
    ]
    if not config.model.path:
        shape = {
            "model.hidden_size": 96,
            "model.intermediate_size": 256,
            "model.num_layers": 1,
            "model.num_kv_heads": 4,
        }
        rows.append(Row("random, second family", RANDOM | shape, role="other_family"))
    return Sweep(
        rows=rows,
        seeds=range(3),
        watched=("noise/paid_correct_share", "completion/length_mean", "entropy/mean"),
        paper="gain on MATH-500, Qwen2.5-Math-7B, in points",
        # All arms of a model begin from the same weights, whatever they train on.
        own_start=("model.", "warmup."),
        start_settings={"data.train": f"{config.data.train},{KNOWN}"},
        behaviour=r"\n" if not config.model.path else "python",
    )


def get_config() -> Config:
    """The arm `truth`."""
    return Config(
        run_dir="runs/spurious_rewards/base",
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
            evaluation=KNOWN,
            task_options=(
                '{"operators": "+", "max_operand": 5, "terms": 4, "guesses": 8, '
                '"boxed": true, "count": 256}'
            ),
            template="raw",
            max_prompt_tokens=24,
        ),
        rollout=RolloutConfig(num_generations=8, max_completion_tokens=30),
        reward=RewardConfig(workers=1, timeout_s=20.0),
        objective=Objective(epsilon_high=0.2),
        optimizer=OptimizerConfig(learning_rate=3e-4),
        batch=BatchConfig(prompts_per_step=16, minibatches_per_step=4),
        warmup=WarmupConfig(steps=600, batch_size=64, learning_rate=3e-3),
        evaluation=EvaluationConfig(prompts=64, num_generations=8),
        checkpoint=CheckpointConfig(every_steps=20, export=False),
        logging=LoggingConfig(
            completions_every_steps=20, tensorboard=False, report=False
        ),
    )
