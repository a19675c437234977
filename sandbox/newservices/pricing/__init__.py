"""The package that moto finds as ``moto.pricing``."""

from .models import pricing_backends

__all__ = ["pricing_backends"]
