"""Our formulas against numbers computed by other projects.

`python -m tests.golden DIR` reads manifest.json (or .json.gz) and its npz files, runs
every case through the adapter of its formula and prints the agreement. An adapter says
how a peer's call is written with functions of `rlvr_jax.core`; where a peer departs
from the published formula, the adapter spells out the difference.
"""
