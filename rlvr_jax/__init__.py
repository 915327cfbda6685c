"""Reinforcement learning with verifiable rewards (RLVR) for language models, in JAX.

Nothing is imported here: verifier processes start from this package and must not load
JAX. Import what you use, as `from rlvr_jax.core import advantages`.
"""
