"""Run the application: our errors become one line, Ctrl-C leaves at once, a closed pipe is no error."""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.text import Text

from rightsizer.errors import RightsizerError, UnreadableError
from rightsizer.render.sentences import READ_AGAIN
from rightsizer.terminal.app import Exit, app
from rightsizer.terminal.tables import Screen

ALONE = ("scan", "explain")
"""Commands of the application itself: they need none of the other commands' modules, which cost half of a start."""

ORDERS = frozenset(
    ("approve", "test", "reject", "snooze", "apply", "rollback", "freeze", "wake", "components", "policy")
)
"""Commands that may have recorded something before they were interrupted."""


def join_commands() -> None:
    """Let every command join the application."""
    from rightsizer.terminal import (  # noqa: F401
        advise,
        backtest,
        doctor,
        freeze,
        history,
        money,
        orders,
        policy,
        report,
        training,
        wake,
    )


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code."""
    if not arguments or arguments[0] not in ALONE:
        join_commands()
    command = typer.main.get_command(app)
    try:
        with _log_to_stderr():
            result = command.main(list(arguments), prog_name="rightsizer", standalone_mode=False)
        return _exit_interrupted(arguments) if result == Exit.INTERRUPTED else int(result or 0)
    except (KeyboardInterrupt, typer.Abort):
        return _exit_interrupted(arguments)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except RightsizerError as error:
        said = f"the stored row cannot be read: {error}; {READ_AGAIN}" if isinstance(error, UnreadableError) else error
        screen = Screen(stderr=True)  # in a log an error is one line
        screen.print(Text.assemble(("error: ", "bold red"), str(said)), soft_wrap=not screen.is_terminal)
        return Exit.FAILED
    except Exception as error:
        return _usage(error)


def _exit_interrupted(arguments: Sequence[str]) -> int:
    is_order = bool(ORDERS.intersection(arguments[:1]))
    known = (
        "the order may be recorded all the same; rightsizer proposals, in the same Region, tells"
        if is_order
        else "nothing was changed"
    )
    sys.stderr.write(f"\ninterrupted; {known}\n")
    return Exit.INTERRUPTED


def _usage(error: Exception) -> int:
    """The exit code of click's own errors, shown its way; anything else is a fault of ours and goes on."""
    show = getattr(error, "show", None)
    if show is None:
        raise error
    show()
    return int(getattr(error, "exit_code", Exit.USAGE))


@contextmanager
def _log_to_stderr() -> Iterator[None]:
    """The program's own log goes to standard error, so that standard output stays a table or JSON."""
    handlers = [each for each in logging.getLogger("rightsizer").handlers if isinstance(each, logging.StreamHandler)]
    before = [handler.stream for handler in handlers]
    for handler in handlers:
        handler.stream = sys.stderr
    try:
        yield
    finally:
        for handler, stream in zip(handlers, before, strict=True):
            handler.stream = stream
