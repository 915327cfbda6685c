"""Where the SmolLM2 file of the tests lies, if it does."""

import os
import pathlib

import pytest


def gguf_path() -> pathlib.Path:
    """SmolLM2-135M-Instruct.Q4_1.gguf, named by RLVR_SMOLLM2; else the test skips."""
    path = os.environ.get("RLVR_SMOLLM2", "")
    if not path:
        pytest.skip("RLVR_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf")
    return pathlib.Path(path)
