"""The notebooks run from top to bottom, draw something, and are stored without output.

Cells are executed here, without a Jupyter kernel: nothing in them is IPython's.
"""

import json
import pathlib

import matplotlib
import matplotlib.pyplot as plt
import pytest

from tests.analysis import test_sweeps

folder = test_sweeps.folder  # a fixture
ROOT = pathlib.Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIGURES = {
    "01_losses": 6,
    "02_entropy_collapse": 4,
    "03_dapo_ablation": 5,
    "04_pass_at_k": 4,
    "05_verifiers": 3,
}


def code_cells(path):
    cells = json.loads(path.read_text("utf8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.fixture
def _drawing(monkeypatch, tmp_path):
    """Figures in memory; no sweep that happens to lie in the working folder."""
    monkeypatch.setenv("SWEEP", str(tmp_path))
    backend = matplotlib.get_backend()
    plt.switch_backend("Agg")
    plt.close("all")
    yield
    plt.close("all")
    plt.switch_backend(backend)


def run(path, first=None):
    """All code cells, or the first few."""
    namespace = {"__name__": "__main__"}
    for cell in code_cells(path)[:first]:
        code = compile("".join(cell["source"]), f"{path.stem}:{cell['id']}", "exec")
        exec(code, namespace)
    return namespace


@pytest.mark.usefixtures("_drawing")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(path):
    """INT-1 to INT-9: 05 has the checkers and the trace (INT-1, INT-2), 01 the six
    samples, chips, length bars and stale weights (INT-3, INT-4, INT-5, INT-6), 02 the
    entropy toy (INT-7), 04 pass@k and test time (INT-8, INT-9)."""
    run(path)
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert len(figures) == FIGURES[path.stem]
    for figure in figures:
        figure.canvas.draw()
        assert all(axis.has_data() for axis in figure.axes)


@pytest.mark.usefixtures("_drawing")
def test_the_ablation_reads_a_sweep(folder, monkeypatch, capsys):
    """A synthetic sweep: its table is printed and drawn beside the paper's."""
    monkeypatch.setenv("SWEEP", str(folder))
    run(ROOT / "notebooks" / "03_dapo_ablation.ipynb", first=2)
    assert capsys.readouterr().out.startswith("| row |")
    assert len(plt.gcf().axes) == 2


def test_every_notebook_is_run():
    assert [path.stem for path in NOTEBOOKS] == sorted(FIGURES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_that_ran_is_stored(path):
    for cell in code_cells(path):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
    assert path.stat().st_size < 30_000
