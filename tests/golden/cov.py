"""Adapters of the cov formulas."""

from tests.golden.case import Adapter

ADAPTERS: dict[str, Adapter] = {}
