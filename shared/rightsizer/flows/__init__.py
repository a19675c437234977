"""Flows: gather, decide, act. One module a flow; each takes ports and `now`."""
