"""First half of `dimensions.dimension.Dimension`: the offer of a way to change an endpoint, before its plan.

`changes/dimension.py` has the other half. "Dimension" is the word that Limits uses: `{"dimensions": ["schedule"]}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol

from rightsizer.domain.option import Excluded, Option, OptionKind
from rightsizer.domain.reason import Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.errors import InputError

if TYPE_CHECKING:
    from rightsizer.recommender.context import EvaluationContext


type OfferAnswer = Option | Reason | Excluded
"""An option, or why there is none: for what runs, or for another type that it names."""


class Restart(StrEnum):
    """Restart that an option causes, in the words that people read."""

    NOTHING = "nothing restarts"
    NEW_INSTANCES = "the model starts on new instances"
    NEW_COPIES = "the copies start again, some at a time"
    NEW_ENDPOINT = "a new endpoint starts beside this one"


class Offering(Protocol):
    """How a dimension is offered, and the words for its options."""

    kinds: ClassVar[tuple[OptionKind, ...]]
    """The kinds of option that it makes."""
    restart: ClassVar[Restart] = Restart.NEW_INSTANCES
    """What starts anew for those of its options that say that a restart is needed."""
    keeps: ClassVar[bool] = True
    """Whether what was there before still exists after the change, so that somebody can bring it back."""
    does: ClassVar[str] = ""
    """What its options do, as the end of "it can ..."."""
    back: ClassVar[str] = "deploys the old configuration again"
    """What brings back what was there, as the end of "rightsizer ..." or "its owner ..."."""

    competes: ClassVar[bool] = False
    """Whether its options are weighed with the fleets of the search; else they stand behind what is chosen."""

    replays: ClassVar[bool] = False
    """Whether a back-test can serve past days on its options."""

    def out_of_scope(self, context: EvaluationContext) -> Reason | None:
        """Why it is not looked at on such an endpoint, whatever it would cost; None where it is."""
        return None

    def offer(self, context: EvaluationContext, recommendation: Recommendation) -> Iterable[OfferAnswer]:
        """Options of the dimension, or why there are none; `recommendation` is the recommendation without them."""
        return ()

    def describe(self, option: Option) -> str:
        """Effect of the option, as the end of "it can ..."; `does` unless the words depend on the option."""
        return self.does

    def restart_of(self, option: Option) -> Restart:
        """`restart`, or another one for some of its options."""
        return self.restart

    def undo(self, option: Option) -> str:
        """`back`, or other words for some of its options."""
        return self.back


def collect_offers(
    offering: Offering, context: EvaluationContext, recommendation: Recommendation
) -> Iterator[Option | Excluded]:
    """Options of a dimension, and exclusions with their reasons."""
    reason = offering.out_of_scope(context)
    for answer in offering.offer(context, recommendation) if reason is None else (reason,):
        yield Excluded(context.runs.name, answer, offering.kinds[0]) if isinstance(answer, Reason) else answer


def find[D: Offering](dimensions: Sequence[D], kind: OptionKind) -> D:
    """The dimension that makes options of that kind. InputError where none is registered."""
    found = next((one for one in dimensions if kind in one.kinds), None)
    if found is None:
        raise InputError(f"no registered dimension makes options of the kind {kind.value}")
    return found
