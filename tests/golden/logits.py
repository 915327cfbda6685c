"""Adapters of the logits formulas."""

from tests.golden.case import Adapter

ADAPTERS: dict[str, Adapter] = {}
