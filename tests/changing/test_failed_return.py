"""A way back that its own deployment rolls back: handed over with the class that AWS's text names."""

from datetime import timedelta

import pytest

from rightsizer.domain.change import Change, ChangeState, FailureClass
from rightsizer.domain.reason import Code
from rightsizer.flows.orders import Orders
from tests.changing.world import NAME, World, world


def returned(w: World, ending: str) -> Change:
    """A proven change that somebody undoes, and the deployment of the way back ends so."""
    w.start()
    w.run(6)
    w.box.script_deployment(NAME, ending)
    Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
    w.apply.tick(w.now)
    return w.run(12)


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        ("health_check", FailureClass.HEALTH_CHECK),
    ],
)
def test_its_class_is_in_the_outcome_the_message_and_the_ledger(ending: str, kind: FailureClass) -> None:
    with world() as w:
        change = returned(w, ending)
        (past,) = [p for p in w.store.history(NAME).endpoint if p.ended == "handed-over"]
        notes = w.ledger.occurrences(change.created_at, w.now + timedelta(days=1))
        (noted,) = [n.text for n in notes if n.key.endswith("handed-over")]
        told = w.told[-1][1]
    assert (change.state, change.failure, past.failure) == (ChangeState.HANDED_OVER, kind, kind.value)
    assert change.reason is not None
    assert change.reason.code is Code.WAY_BACK_FAILED
    for text in (change.outcome, told, noted):
        assert text.startswith(f"{kind.value}: the way back was refused by its own deployment: ")
    assert len(change.remaining) == 1
    assert change.remaining[0].startswith("aws sagemaker update-endpoint ")
