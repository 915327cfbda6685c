"""Adapters of the kl formulas."""

from tests.golden.case import Adapter

ADAPTERS: dict[str, Adapter] = {}
