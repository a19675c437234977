"""Details of proposals, stored where a click on the message finds them: the page, and the modal of Slack as JSON."""

import json

from rightsizer.domain.message import CapacityChangeMessage, ProposalMessage
from rightsizer.ports.evaluation import ReportStore
from rightsizer.render import capacity_change, details_page, details_view


class StoredDetailsPages:
    """Makes each page and puts it into a store (port `DetailsPages`)."""

    def __init__(self, store: ReportStore) -> None:
        self._store = store

    def keep(self, message: ProposalMessage | CapacityChangeMessage) -> str:
        """Store the page as it is now, in place of an earlier one; returns where it is."""
        if isinstance(message, ProposalMessage):
            identity, page = message.proposal.id, details_page.details_page(message.proposal)
            view = details_view.proposal_view(message.proposal)
        else:
            identity, page = message.asked.id, capacity_change.html(message.asked)
            view = details_view.capacity_view(message.asked)
        shown = json.dumps(view, separators=(",", ":")).encode()
        self._store.put(f"pages/{identity}.json", shown, "application/json")
        return self._store.put(f"pages/{identity}.html", page.encode(), "text/html; charset=utf-8")
