"""What a person may ask of an endpoint of inference components: a proposal, which waits for its approval."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

import typer

from rightsizer import bootstrap
from rightsizer.domain.option import ScaleIn
from rightsizer.render import sentences
from rightsizer.terminal import document
from rightsizer.terminal import tables as show
from rightsizer.terminal.app import app, print_json
from rightsizer.terminal.options import Given, order


class Strategy(StrEnum):
    """How instances are given back."""

    CONSOLIDATION = "consolidation"
    IDLE_RELEASE = "idle-release"


STRATEGIES: Mapping[Strategy, Literal["CONSOLIDATION", "IDLE_RELEASE"]] = {
    Strategy.CONSOLIDATION: "CONSOLIDATION",
    Strategy.IDLE_RELEASE: "IDLE_RELEASE",
}


class Placement(StrEnum):
    """How copies are placed on instances."""

    BINPACK = "binpack"
    SPREAD = "spread"


PLACEMENTS: Mapping[Placement, Literal["BINPACK", "SPREAD"]] = {
    Placement.BINPACK: "BINPACK",
    Placement.SPREAD: "SPREAD",
}


@app.command(
    epilog="Example: rightsizer components chat --scale-in consolidation --cooldown 30; or --placement binpack"
)
@order
def components(
    given: Given,
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT", help="An endpoint of inference components.")],
    scale_in: Annotated[
        Strategy | None,
        typer.Option("--scale-in", help="Move copies together to empty instances, or give back empty ones only."),
    ] = None,
    placement: Annotated[
        Placement | None, typer.Option("--placement", help="Place copies on few instances, or evenly.")
    ] = None,
    step: Annotated[int | None, typer.Option("--step", help="Instances that go at a time, 1 to 100.")] = None,
    cooldown: Annotated[int | None, typer.Option("--cooldown", help="Minutes between, 5 to 1440.")] = None,
    variant: Annotated[str, typer.Option("--variant", help="Of several variants, which.")] = "",
    component: Annotated[
        list[str] | None, typer.Option("--component", help="Only this one; may be given again. Else all.")
    ] = None,
) -> None:
    """Ask for another scale-in policy, or another placement of the copies: one of the two at a time.

    It is proposed; an approval lets the stack carry it out with a way back.
    """
    at = given.desk()
    if (scale_in is None) is (placement is None):
        raise typer.BadParameter("give one of --scale-in and --placement: one change moves one of them")
    if scale_in is not None:
        wanted = ScaleIn(variant or endpoint, STRATEGIES[scale_in], step, cooldown)
        made = at.asking.scale_in(endpoint, variant, wanted, at.who, bootstrap.now())
    if placement is not None:
        made = at.asking.placement(endpoint, PLACEMENTS[placement], component or (), at.who, bootstrap.now())
    option = made.recommendation.options[0]
    if given.as_json:
        row = {
            "id": made.id,
            "endpoint": endpoint,
            "state": made.state.value,
            "recommended": document.of_option(option),
        }
        print_json({"version": document.VERSION, "proposal": row})
        return
    show.say(f"Proposed: {endpoint} can {sentences.change(option)} ({made.id}). {option.not_checked[0].capitalize()}.")
    show.say(f"Nothing happens until somebody approves it: rightsizer approve {made.id}")
