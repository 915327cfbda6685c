"""The memory account of PPO and GRPO."""

import pytest

from rlvr_jax.core.memory import networks_gigabytes


@pytest.mark.parametrize(
    ("trained", "frozen", "gigabytes"),
    [(2, 2, 252), (1, 1, 126), (1, 0, 112)],
    ids=["PPO", "GRPO", "beta 0"],
)
def test_four_networks_or_two(trained, frozen, gigabytes):
    """PG-33: 7e9 parameters; 7 (16 + 16 + 2 + 2), 7 (16 + 2), 7 * 16."""
    assert networks_gigabytes(7, trained=trained, frozen=frozen) == gigabytes
