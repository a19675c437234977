"""The package that moto finds as ``moto.savingsplans``."""

from .models import savingsplans_backends

__all__ = ["savingsplans_backends"]
