"""Memory of the log-prob part by the length of a completion, as the compiler counts."""

from launch.bench import SHAPES
from launch.bench_growth import logprob_bytes


def test_memory_does_not_grow_with_the_logits():
    """16 times the tokens take a few hidden states more, never [T, V] logits: on the
    tiny shape 512 floats a token, of which 128 are its state and as many its gradient.
    """
    architecture = SHAPES["tiny"].architecture
    short, long = (logprob_bytes(architecture, n) for n in (512, 8192))
    per_token = (long - short) / (8192 - 512)
    assert per_token < 4 * 2 * architecture.hidden_size
    assert per_token < 4 * architecture.vocab_size / 3
