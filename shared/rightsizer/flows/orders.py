"""What a person orders: go back, freeze, thaw. Recorded by conditional writes; the `apply` door acts on it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from rightsizer.autoscaling.scheduled_actions import as_due
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass
from rightsizer.domain.live_state import EndpointSight, Gone
from rightsizer.domain.policy import Switch
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import InputError
from rightsizer.ports.changes import Journal

STANDING = (ChangeState.PROVEN, ChangeState.APPLIED)
"""Ends after which the endpoint runs what the change made."""


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders are written to the journal; the next tick carries them out."""

    journal: Journal
    look: Callable[[str], EndpointSight | Gone] | None = None
    """How an endpoint looks now; without it the `apply` door alone sees that there is nothing left to go back from."""

    def ask_back(self, change_id: str, by: str, now: datetime) -> Change:
        """Bring the endpoint back to its old configuration, also after the change was proven.

        Raises InputError when there is nothing to go back from, ConflictError when another change holds the endpoint.
        """
        change = self.journal.load(change_id)
        if change is None:
            raise InputError(f"rolling back: there is no change {change_id}")
        if change.closed:
            self._stands(change)
        note = Entry(now, "ask-back", "noted", by)
        asked = replace(change, asked_back_by=by, next_due=now, journal=(*change.journal, note))
        if change.closed or (change.course is Course.CLOSE and change.ending in STANDING):
            back = replace(asked, state=ChangeState.RETURNING, course=Course.BACK, ending=None, remaining=())
            asked = replace(back, back_for=FailureClass.ASKED)
        if asked.course is Course.BACK:
            asked = replace(asked, reason=Reason(Code.ROLLED_BACK, f"{by} asked for the way back"))
        return self.journal.reopen(replace(asked, lease_until=None)) if change.closed else self.journal.save(asked)

    def _stands(self, change: Change) -> None:
        """Raises InputError unless the endpoint still runs what the closed change made."""
        if change.state not in STANDING:
            raise InputError(f"rolling back: change {change.id} is {change.state.value}; there is nothing to undo")
        if self.look is None:
            return
        endpoint, name = self.look(change.ref.name), change.ref.name
        if isinstance(endpoint, Gone):
            raise InputError(f"rolling back: endpoint {name} does not exist any more; there is nothing to undo")
        made = change.plan.new_config or (change.before.config_name if change.before else "")
        other = next((c for c in (endpoint.pending_config, endpoint.config_name) if c and c != made), "")
        if other:
            raise InputError(
                f"rolling back: {name} runs configuration {other}, and change {change.id} left it with {made}; "
                "somebody deployed since, so going back would undo their work"
            )

    def freeze(self, by: str, now: datetime, *, hard: bool = False) -> tuple[Change, ...]:
        """No change starts and no forward step is taken from now on; returns the changes that are open,
        with the autoscaling that is due now."""
        self.journal.set_switch(Switch(True, hard, by, now))
        return tuple(as_due(change, now).change for change in self.journal.open_changes())

    def thaw(self, by: str, now: datetime) -> None:
        """Let changes go on."""
        self.journal.set_switch(Switch(False, False, by, now))
