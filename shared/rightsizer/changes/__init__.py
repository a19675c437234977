"""Preflight, plan, next action, proof and rollback of one change: pure functions on its journal."""
