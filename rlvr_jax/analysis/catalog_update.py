"""Charts of the update: clip, ratio, KL, loss, corrections, critic."""

from rlvr_jax.analysis.chart_types import Chart, Section

UPDATE = Section(
    "Update",
    (
        Chart(
            "Clipped tokens",
            "share",
            (("clip/low", "below 1 - ε_low"), ("clip/high", "above 1 + ε_high")),
            "Gradients that the clip removed; none with one update per batch.",
            essential=True,
        ),
        Chart(
            "Clipped tokens by probability",
            "share",
            (
                ("clip/probability_bin_1", "0 to 0.2"),
                ("clip/probability_bin_2", "to 0.4"),
                ("clip/probability_bin_3", "to 0.6"),
                ("clip/probability_bin_4", "to 0.8"),
                ("clip/probability_bin_5", "to 1"),
            ),
            "Of the tokens that the old policy gave that probability.",
        ),
        Chart(
            "Probability of up-clipped tokens",
            "",
            (("clip/high_probability", "mean"),),
            "Small: the upper bound holds back unlikely tokens.",
        ),
        Chart(
            "Importance ratio",
            "",
            (("ratio/mean", "mean"), ("ratio/min", "min"), ("ratio/max", "max")),
        ),
        Chart("Spread of the ratio", "", (("ratio/std", "std"),)),
        Chart(
            "Covariance of log-prob and advantage",
            "",
            (("entropy/covariance", "over tokens"),),
            "Above 0, the update lowers the entropy.",
        ),
        Chart(
            "KL divergence",
            "nats",
            (("kl/old_policy", "to old policy"), ("kl/reference", "to reference")),
            "Per token.",
        ),
        Chart(
            "Loss",
            "",
            (
                ("loss/total", "total"),
                ("loss/policy", "policy"),
                ("loss/kl", "KL term"),
                ("loss/entropy", "entropy term"),
                ("loss/imitation", "likelihood of correct ones"),
            ),
        ),
        Chart("Entropy coefficient", "", (("entropy/coefficient", "after the step"),)),
        Chart("Gradient norm", "", (("grad/norm", "before clipping"),)),
        Chart("Learning rate", "", (("optimizer/learning_rate", "last update"),)),
        Chart("Skipped updates", "share", (("optimizer/skipped", "of the updates"),)),
        Chart(
            "Sampler mismatch",
            "nats",
            (
                ("mismatch/abs_logprob_mean", "mean"),
                ("mismatch/abs_logprob_max", "max"),
            ),
            "Absolute difference of a token's log-prob, sampler and trainer.",
            log=True,
        ),
        Chart(
            "Sampler mismatch, KL",
            "nats",
            (("mismatch/kl", "k3"), ("mismatch/kl_k1", "k1")),
            "Two estimates of KL(sampler || trainer).",
        ),
        Chart(
            "Sampler mismatch, probabilities",
            "",
            (
                ("mismatch/probability_gap", "mean gap"),
                ("mismatch/probability_gap_max", "largest gap"),
            ),
            "Absolute difference of a token's probability, sampler and trainer.",
            log=True,
        ),
        Chart(
            "Sampler mismatch, shares",
            "share",
            (
                ("mismatch/beyond_0.01", "beyond 0.01 nats"),
                ("mismatch/beyond_0.1", "beyond 0.1"),
                ("mismatch/beyond_1", "beyond 1"),
            ),
            "Tokens whose log-probs are further apart.",
        ),
        Chart(
            "Sampler mismatch, agreement",
            "",
            (
                ("mismatch/correlation", "correlation of probabilities"),
                ("mismatch/effective_share", "effective sample size"),
            ),
        ),
        Chart(
            "Off-policy correction",
            "share",
            (
                ("correction/dropped_share", "tokens taken out"),
                ("correction/effective_share", "effective sample size"),
            ),
            "Weights for a sampler that is not the trainer.",
        ),
        Chart("Correction weight", "", (("correction/weight_mean", "mean"),)),
    ),
)

CRITIC = Section(
    "Critic",
    (
        Chart(
            "Explained variance",
            "",
            (("critic/explained_variance", "of the returns"),),
            "1: the critic knew the return; 0: no better than its mean.",
        ),
        Chart(
            "Value and return",
            "",
            (("critic/value_mean", "value"), ("critic/return_mean", "return")),
        ),
        Chart(
            "Value less return",
            "",
            (
                ("critic/bias_first", "first quarter of completions"),
                ("critic/bias_last", "last quarter"),
            ),
            "A critic from a reward model may be right at the end alone.",
        ),
        Chart("Critic's loss", "", (("critic/loss", "per token"),)),
        Chart("Clipped values", "share", (("critic/clip_share", "of the tokens"),)),
    ),
)
