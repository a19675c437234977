"""Messages that may fail: a refused message loses neither a journal nor another change."""

from functools import partial

from rightsizer.domain.message import Notice, SafeTell
from rightsizer.domain.outcome import Occurrence
from rightsizer.errors import RightsizerError
from rightsizer.ports.changes import SavingsLedger
from rightsizer.ports.evaluation import Notifier
from rightsizer.telemetry import count, logger


def catch_send_errors(notifier: Notifier) -> SafeTell:
    """Wrap a sender so that it returns False instead of raising.

    A message that was not sent is logged in full and counted.
    """
    return partial(_try_to_send, notifier)


def _try_to_send(notifier: Notifier, subject: str, text: str) -> bool:
    try:
        notifier.post(Notice(subject, text))
    except RightsizerError as error:
        remedy = (
            "the function's role must be let publish to the stack's topic; `rightsizer proposals` shows what stands"
        )
        logger.error(
            "a message was not taken", extra={"subject": subject, "text": text, "why": str(error), "do": remedy}
        )
        count(MessagesLost=1)
        return False
    return True


def tell_once(ledger: SavingsLedger, notifier: Notifier, what: Occurrence, subject: str) -> bool:
    """Tell an occurrence until a channel took it, and never again; whether it was taken, now or before.

    It is noted after it was taken: a process that dies in between repeats a message, and loses none. Where the ledger
    cannot be read, the log has it.
    """
    try:
        if ledger.is_noted(what.key):
            return True
    except RightsizerError as error:
        logger.warning("not told yet", extra={"subject": subject, "text": what.text, "why": str(error)})
        return False
    if not catch_send_errors(notifier)(subject, what.text):
        return False
    try:
        ledger.note(what)
    except RightsizerError as error:
        logger.warning("told, and may be told again", extra={"subject": subject, "why": str(error)})
    return True
