"""Advice before anything runs: the numbered cases, memory and throughput against published figures, the command."""
