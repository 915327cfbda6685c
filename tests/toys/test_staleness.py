"""How hard each method pulls a token as the policy drifts."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.toys.staleness import METHODS, OLD_PROBS, TOKENS, pull, response

WAIT = TOKENS.index(" Wait")
PPO, DAPO, CISPO, GSPO = METHODS


@pytest.mark.parametrize("method", METHODS)
def test_on_policy_all_pull_alike(method):
    """INT-6: at ratio 1 every method is REINFORCE: weight 1, for both signs."""
    for advantage in (1.0, -2.0):
        found = pull(method, jnp.zeros(14), advantage)
        np.testing.assert_allclose(found, np.ones(14), rtol=1e-6)


def test_weights_against_the_ratio():
    """INT-6: A > 0: the ratio below the bound; above it PPO 0, CISPO its cap."""
    ratio = np.array([0.5, 0.9, 1.0, 1.1, 1.19, 1.21, 1.27, 1.29, 3.0])
    at = lambda method, sign: [
        float(pull(method, jnp.log(jnp.array([r])), sign)[0]) for r in ratio
    ]
    np.testing.assert_allclose(at(PPO, 1.0), ratio * (ratio < 1.2), rtol=1e-5)
    np.testing.assert_allclose(at(DAPO, 1.0), ratio * (ratio < 1.28), rtol=1e-5)
    np.testing.assert_allclose(at(PPO, -1.0), ratio * (ratio > 0.8), rtol=1e-5)
    for sign in (1.0, -1.0):
        np.testing.assert_allclose(at(CISPO, sign), ratio.clip(max=1.28), rtol=1e-5)


def test_wait_is_silenced_first_capped_or_kept_with_the_rest():
    """INT-6, CLIP-20: PPO drops " Wait" before any other token, CISPO never does.

    GSPO keeps or drops the whole response.
    """
    silent = {method: {} for method in METHODS}
    for staleness in np.linspace(0, 5, 51):
        log_ratio = response(float(staleness))
        for method in METHODS:
            dropped = np.asarray(pull(method, log_ratio)) == 0
            for token in np.flatnonzero(dropped):
                silent[method].setdefault(int(token), staleness)
    first = min(silent[PPO], key=lambda token: silent[PPO][token])
    assert first == WAIT
    assert silent[PPO][WAIT] < min(s for t, s in silent[PPO].items() if t != WAIT)
    assert silent[PPO][WAIT] < silent[DAPO][WAIT]
    assert silent[CISPO] == {}
    assert set(silent[GSPO]) == set(range(14))
    assert len(set(silent[GSPO].values())) == 1


def test_drift_is_possible():
    """A ratio is at most 1 / p_old, at every staleness the slider has."""
    assert len(TOKENS) == len(OLD_PROBS) == 14
    assert (np.exp(response(5.0)) <= 1 / np.array(OLD_PROBS)).all()
