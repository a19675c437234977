"""Tell people without depending on it: a topic that refuses loses a message, never a journal or another change."""

from collections.abc import Callable
from functools import partial

from rightsizer.domain.outcome import Occurrence
from rightsizer.errors import RightsizerError
from rightsizer.ports.changes import SavingsLedger
from rightsizer.telemetry import count, logger

type Tell = Callable[[str, str], None]
type Told = Callable[[str, str], bool]


def surely(tell: Tell) -> Told:
    """The same messages, with whether each was taken in place of an error. What is lost is in the log, whole."""
    return partial(_told, tell)


def _told(tell: Tell, subject: str, text: str) -> bool:
    try:
        tell(subject, text)
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


def once(ledger: SavingsLedger, tell: Tell, what: Occurrence, subject: str) -> None:
    """Tell an occurrence the first time that its key is noted; where it cannot be noted, the log has it."""
    try:
        first = ledger.note(what)
    except RightsizerError as error:
        logger.warning("not told yet", extra={"subject": subject, "text": what.text, "why": str(error)})
        return
    if first:
        surely(tell)(subject, what.text)
