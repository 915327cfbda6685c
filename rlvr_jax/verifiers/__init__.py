"""Programs that check answers. Host side: nothing here imports jax.

`base` holds the types, `registry` finds a verifier by name, `pool` runs verifiers in
processes that can be killed, `preflight` checks references before a run.
"""
