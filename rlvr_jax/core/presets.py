"""Published methods as rows of settings: what `--config.objective=NAME` puts in place.

A row names what differs from the defaults of `config.Objective`; docs/papers.md gives
the source of each value.
"""

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    # DeepSeekMath, https://arxiv.org/abs/2402.03300
    "grpo": {
        "epsilon_high": 0.2,
        "loss_aggregation": "sequence_mean",
        "beta": 0.04,
        "overlong_filter": False,
    },
    # Dr. GRPO, https://arxiv.org/abs/2503.20783
    "dr_grpo": {
        "scale_rewards": "none",
        "epsilon_high": 0.2,
        "loss_aggregation": "constant",
        "overlong_filter": False,
    },
    # DAPO, https://arxiv.org/abs/2503.14476. Its soft overlong reward needs a length:
    # set objective.overlong_buffer_tokens (4,096 of 20,480 there).
    "dapo": {},
    # Back to Basics, https://arxiv.org/abs/2402.14740
    "rloo": {
        "advantage": "rloo",
        "scale_rewards": "none",
        "surrogate": "reinforce",
        "loss_aggregation": "constant",
        "beta": 0.03,
        "kl_estimator": "k1",
        "kl_placement": "reward",
        "overlong_filter": False,
    },
}
