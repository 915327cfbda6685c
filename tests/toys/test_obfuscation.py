"""A penalised chain of thought: the visible channel is emptied, the hack stays."""

import numpy as np
import pytest

from rlvr_jax.toys.obfuscation import train_against_a_monitor


def test_the_hack_goes_out_of_sight():
    """DIAG-19: with a penalty of 1 the open hack is paid .05 against .58, so the hack
    rate falls from .4 to below .05; then the hidden one, paid .95, takes over, and the
    monitor's recall goes from .95 to its rate on hidden hacks, .05."""
    found = train_against_a_monitor(1.0)
    lowest = int(found.hack_rate.argmin())
    assert found.hack_rate[0] == pytest.approx(0.4)
    assert found.hack_rate[lowest] < 0.05
    assert 0 < lowest < len(found.hack_rate) - 1
    assert (np.diff(found.recall) < 0).all()
    assert found.recall[0] == pytest.approx(0.95, abs=0.005)
    assert found.hack_rate[-1] > 0.99
    assert found.recall[-1] < 0.051
    # First less hack, which looks like success; the recall is lost afterwards.
    half = int(np.argmax(found.recall < 0.5))
    early = int(np.argmax(found.hack_rate < 0.2))
    assert early < half


def test_a_chain_left_alone_stays_readable():
    """DIAG-19: without the penalty the policy hacks as well, and the monitor sees it:
    open and hidden hacks keep their ratio of 399 to 1."""
    found = train_against_a_monitor(0.0)
    assert found.hack_rate[-1] > 0.99
    ratio = found.policy[:, 1] / found.policy[:, 2]
    np.testing.assert_allclose(ratio, 399, rtol=1e-9)
    np.testing.assert_allclose(found.recall, found.recall[0])
