"""What every test shares: properties are judged by their answers, never by the clock of a busy machine."""

from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")
