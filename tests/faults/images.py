"""What code an endpoint runs, and whether a change of ours brought other code."""

from collections.abc import Iterator, Mapping
from typing import Any

from rightsizer.domain.change import Change, JournalEvent
from tests.changing.world import NAME, World


def images(w: World) -> dict[str, list[str]]:
    """By variant the images that run, by their digests."""
    rows = w.live()["ProductionVariants"]
    return {v["VariantName"]: sorted(i["ResolvedImage"] for i in v.get("DeployedImages", [])) for v in rows}


def of_images(w: World, before: Mapping[str, Any], change: Change) -> Iterator[str]:
    """What a change of ours left runs the code that ran before; a way back may bring other code, and says so."""
    ours = {before["config"], change.plan.new_config, change.plan.back_config}
    if w.box.status(NAME) == "Failed" or w.box.config_name(NAME) not in ours:
        return
    found, told = images(w), any(entry.step == JournalEvent.IMAGES for entry in change.journal)
    if found != before["images"] and not told:
        yield f"it runs {found}, and ran {before['images']}: nobody was told"
