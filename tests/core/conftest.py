"""float64 for tests that compare with closed forms."""

import jax
import pytest


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield
