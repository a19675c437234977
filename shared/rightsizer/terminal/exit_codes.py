"""Exit codes, stable for CI. Documented in docs/cli.md."""

from enum import IntEnum


class Exit(IntEnum):
    """What a command ended with."""

    NOTHING_TO_DO = 0
    """Everything was read and no saving of the asked size was found."""
    FAILED = 1
    """The command could not do its work; the message says why."""
    USAGE = 2
    """The command line was not understood."""
    SAVINGS_FOUND = 10
    """At least one saving of the asked size was found, whether or not everything could be read."""
    INCOMPLETE = 20
    """No saving was found, and something could not be read, so there may be one."""
    INTERRUPTED = 130
    """Ctrl-C."""
