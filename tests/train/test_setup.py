"""What is checked when a run is prepared."""

import jax
import pytest

from rlvr_jax.config import Config
from rlvr_jax.train.setup import _check_processes
from rlvr_jax.validate import ConfigError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rollout.engine", "slots"),
        ("rollout.staleness", 2),
        ("reward.execution", "callback"),
    ],
)
def test_several_processes_refuse_what_one_host_decides(monkeypatch, name, value):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    config = Config()
    _check_processes(config)
    section, field = name.split(".")
    setattr(getattr(config, section), field, value)
    with pytest.raises(ConfigError, match=rf"{section}\.{field}=.* has 2"):
        _check_processes(config)
