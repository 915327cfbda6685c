"""Adapters of the aggregation formulas."""

from tests.golden.case import Adapter

ADAPTERS: dict[str, Adapter] = {}
