"""Devices and the sharding of named parameters."""
