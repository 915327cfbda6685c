"""The plateau checklist of a run, as a part of its page."""

from rlvr_jax.analysis import page
from rlvr_jax.analysis.plateau import ABNORMAL, NORMAL, checklist
from rlvr_jax.analysis.runs import Run

_CLASSES = {NORMAL: "good", ABNORMAL: "bad"}


def section(run: Run) -> str:
    """A table of the eight points; folded where none of them is abnormal."""
    findings = checklist(run)
    rows = [
        [
            str(one.point),
            page.escaped(one.name),
            f'<span class="{_CLASSES.get(one.state, "soft")}">{one.state}</span>',
            page.escaped(one.seen),
            page.escaped(one.advice),
        ]
        for one in findings
    ]
    headings = ["", "what", "state", "seen in the last fifth", "if it is the cause"]
    table = page.table(headings, rows, numbers=len(headings))
    shown = " open" if any(one.state == ABNORMAL for one in findings) else ""
    return (
        f'<details class="card below"{shown}><summary>Checklist for a plateau</summary>'
        f"{table}</details>"
    )
