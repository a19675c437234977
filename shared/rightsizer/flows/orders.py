"""What a person orders: go back, freeze, thaw. Recorded by conditional writes; the `apply` door acts on it."""

from dataclasses import dataclass, replace
from datetime import datetime

from rightsizer.errors import InputError
from rightsizer.flows.apply_schedule import as_due
from rightsizer.model.change import Change, ChangeState, Course, Entry
from rightsizer.model.limits import Switch
from rightsizer.model.reason import Code, Reason
from rightsizer.ports_change import Journal


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders are written to the journal; the next tick carries them out."""

    journal: Journal

    def ask_back(self, change_id: str, by: str, now: datetime) -> Change:
        """Bring the endpoint back to its old configuration, also after the change was proven.

        Raises InputError when there is nothing to go back from, ConflictError when another change holds the endpoint.
        """
        change = self.journal.load(change_id)
        if change is None:
            raise InputError(f"rolling back: there is no change {change_id}")
        if change.closed:
            if change.state not in (ChangeState.PROVEN, ChangeState.APPLIED):
                raise InputError(f"rolling back: change {change_id} is {change.state.value}; there is nothing to undo")
            change = self.journal.reopen(
                replace(
                    change,
                    state=ChangeState.RETURNING,
                    course=Course.BACK,
                    ending=None,
                    remaining=(),
                    lease_until=None,
                    next_due=now,
                )
            )
        note = Entry(now, "ask-back", "noted", by)
        asked = replace(change, asked_back_by=by, next_due=now, journal=(*change.journal, note))
        if asked.course is Course.BACK:
            asked = replace(asked, reason=Reason(Code.ROLLED_BACK, f"{by} asked for the way back"))
        return self.journal.save(asked)

    def freeze(self, by: str, now: datetime, *, hard: bool = False) -> tuple[Change, ...]:
        """No change starts and no forward step is taken from now on; returns the changes that are open,
        with the autoscaling that is due now."""
        self.journal.set_switch(Switch(True, hard, by, now))
        return tuple(as_due(change, now)[0] for change in self.journal.open_changes())

    def thaw(self, by: str, now: datetime) -> None:
        """Let changes go on."""
        self.journal.set_switch(Switch(False, False, by, now))
