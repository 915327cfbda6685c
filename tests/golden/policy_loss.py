"""Adapters of the policy_loss formulas."""

from tests.golden.case import Adapter

ADAPTERS: dict[str, Adapter] = {}
