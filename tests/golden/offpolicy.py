"""Adapters of the offpolicy formulas."""

from tests.golden.case import Adapter

ADAPTERS: dict[str, Adapter] = {}
