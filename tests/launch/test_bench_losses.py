"""The bench of the surrogates: what is timed is the same computation on both sides."""

import numpy as np
import pytest

from launch import bench_losses, bench_torch


@pytest.fixture(scope="module")
def figures():
    pytest.importorskip("torch")
    return bench_losses.bench_losses(1, rows=16, tokens=96)


@pytest.mark.parametrize("name", bench_losses.CASES)
def test_gradient_is_that_of_torch(figures, name):
    """Two formulas written apart, autodiff by two libraries; float32 rounds at 6e-8."""
    assert figures["surrogates"][name]["gradient_gap"] < 1e-6


def test_figures_of_every_surrogate(figures):
    assert figures["compiles_after_first"] == 0
    for row in figures["surrogates"].values():
        assert np.isclose(row["time_ratio"], row["ms"] / row["torch_ms"])
        # The gradient alone is 16 x 96 float32.
        assert min(row["peak_mib"], row["torch_peak_mib"]) * 2**20 >= 16 * 96 * 4


def test_without_torch_only_our_figures_are_left(monkeypatch):
    monkeypatch.setattr(bench_torch, "load", lambda: False)
    kept = {name: bench_losses.CASES[name] for name in ("clipped",)}
    monkeypatch.setattr(bench_losses, "CASES", kept)
    figures = bench_losses.bench_losses(1, rows=16, tokens=96)
    assert set(figures["surrogates"]["clipped"]) == {"peak_mib", "ms"}
    assert "max_time_ratio" not in figures


def test_peak_of_torch_counts_what_is_held_at_once():
    torch = pytest.importorskip("torch")
    assert bench_torch.load()
    ones = torch.ones(1 << 20)
    # 4 MiB each: the sum beside the product, then the product beside the second sum;
    # 8 MiB at once of 12 in all. Scalars such as the 1 take a few bytes.
    peak = bench_torch.peak_bytes(lambda: (ones + 1) * 2 + 1)
    assert peak == pytest.approx(8 << 20, abs=256)
