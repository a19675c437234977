"""The report in a browser: no error, nothing clipped, readable contrast, light and dark, on a phone and a desktop."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from rightsizer.render.details_page import details_page
from rightsizer.render.report_page import report
from rightsizer.reporting.totals import Records, make_report
from tests.render.report_sample import sample_report
from tests.samples import NOW, proposal

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="needs chromium or google-chrome on the path, which draws the page"),
]
DARK, LIGHT = 0, 1
"""Values of Blink's setting preferredColorScheme."""
LEAST_CONTRAST = 4.5
"""Of text against its background: Web Content Accessibility Guidelines 2.2, criterion 1.4.3, level AA."""
PAGES = {
    "report": report(sample_report()),
    "report of nothing": report(make_report(Records("1", "eu-west-1", [], [], [], []), NOW, NOW, NOW)),
    "details": details_page(proposal()),
}
PROBE = """
<script>
const errors=[];addEventListener('error',event=>errors.push(String(event.message)));
addEventListener('load',()=>{
const parts=text=>text.match(/[\\d.]+/g).map(Number);
const read=text=>{const [a,b,c,d=1]=parts(text);const scale=text.startsWith('color(')?255:1;
return [a*scale,b*scale,c*scale,d]};
const channel=value=>{value/=255;return value<=0.04045?value/12.92:((value+0.055)/1.055)**2.4};
const light=([r,g,b])=>0.2126*channel(r)+0.7152*channel(g)+0.0722*channel(b);
const ratio=(one,other)=>{const [a,b]=[light(one),light(other)].sort((x,y)=>y-x);return (a+0.05)/(b+0.05)};
const behind=element=>{for(let at=element;at;at=at.parentElement){
const colour=read(getComputedStyle(at).backgroundColor);if(colour[3]>=1)return colour}return [255,255,255,1]};
const clipped=[],faint=[],small=[];
const scrolls=element=>{for(let at=element;at;at=at.parentElement)
if(at.classList&&at.classList.contains('scroll')&&getComputedStyle(at).overflowX==='auto')return true;return false};
const check=()=>{
const walker=document.createTreeWalker(document.body,NodeFilter.SHOW_TEXT);
for(let node;node=walker.nextNode();){
const element=node.parentElement,said=node.textContent.trim();
if(!said||['SCRIPT','STYLE','TITLE','title'].includes(element.tagName))continue;
const range=document.createRange();range.selectNodeContents(node);const box=range.getBoundingClientRect();
if(!box.width||!box.height)continue;
const style=getComputedStyle(element);
const contrast=ratio(read(style.color),behind(element));
if(contrast<LEAST)faint.push([said.slice(0,40),Math.round(contrast*100)/100]);
if(parseFloat(style.fontSize)<12)small.push([said.slice(0,40),style.fontSize]);
if(!scrolls(element)&&(box.left<-1||box.right>innerWidth+1))clipped.push([said.slice(0,40),Math.round(box.right)]);
for(let at=element;at;at=at.parentElement){const s=getComputedStyle(at);
if(/hidden|clip/.test(s.overflowX)&&at.scrollWidth>at.clientWidth+1){clipped.push([said.slice(0,40),'hidden']);break}}
}};
check();
for(const part of document.querySelectorAll('details'))part.open=true;
check();
for(const button of document.querySelectorAll('th button'))button.click();
const seen={width:innerWidth,page:document.documentElement.scrollWidth,errors,clipped,faint,small,
dark:matchMedia('(prefers-color-scheme: dark)').matches,paper:getComputedStyle(document.body).backgroundColor};
parent.postMessage(JSON.stringify(seen),'*')});
</script>
"""
FRAMES = """<!doctype html>%s
<pre id="seen"></pre>
<script>const seen={};addEventListener('message',event=>{
for(const frame of document.querySelectorAll('iframe'))
if(frame.contentWindow===event.source)seen[frame.name]=JSON.parse(event.data);
document.getElementById('seen').textContent=JSON.stringify(seen)})</script>
"""
"""Pages in frames: the window of a headless browser is never below 500 px, and one start of it shows them all."""
FRAME = '<iframe name="%s" src="%s.html" style="display:block;width:%spx;height:900px;border:0"></iframe>'
WIDTHS = (390, 1280)
SHEET = 718
"""Pixels between the margins of A4, as Chromium prints it."""


def opened(pages: Mapping[str, str], widths: Sequence[int], folder: Path, scheme: int) -> tuple[dict[str, Any], str]:
    """What the browser saw of each page at each width (``page-390``), and what it said on its console."""
    frames = []
    for number, (name, page) in enumerate(pages.items()):
        text = page.replace("<main>", PROBE.replace("LEAST", str(LEAST_CONTRAST)) + "<main>", 1)
        (folder / f"{number}.html").write_text(text)
        frames += [FRAME % (f"{name}-{width}", number, width) for width in widths]
    frame = folder / "frame.html"
    frame.write_text(FRAMES % "".join(frames))
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        f"--user-data-dir={folder / 'profile'}",
        "--hide-scrollbars",
        "--window-size=1400,1000",
        f"--blink-settings=preferredColorScheme={scheme}",
        "--virtual-time-budget=3000",
        "--dump-dom",
        frame.as_uri(),
    ]
    environment = {**os.environ, "HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=environment)
    found = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(unescape(found[1])), done.stderr


@pytest.fixture(scope="module", params=[LIGHT, DARK], ids=["light", "dark"])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any], str]:
    """The scheme, what the browser saw of every page in it, and its console."""
    scheme: int = request.param
    return scheme, *opened(PAGES, WIDTHS, tmp_path_factory.mktemp("pages"), scheme)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_whole_and_readable(page: str, width: int, shown: tuple[int, dict[str, Any], str]) -> None:
    scheme, every, console = shown
    seen = every[f"{page}-{width}"]
    assert seen["width"] == width
    assert seen["dark"] is (scheme == DARK)
    assert seen["errors"] == []
    assert "CONSOLE" not in console, [line for line in console.splitlines() if "CONSOLE" in line]
    assert seen["page"] <= width, "the page scrolls sideways"
    assert seen["clipped"] == []
    assert seen["faint"] == []
    assert seen["small"] == [], "letters below 12 px"


def test_a_page_fits_the_sheet_that_it_is_printed_on(tmp_path: Path) -> None:
    printed = {name: page.replace("@media print", "@media all") for name, page in PAGES.items()}
    every, _ = opened(printed, [SHEET], tmp_path, LIGHT)
    for name in PAGES:
        seen = every[f"{name}-{SHEET}"]
        assert (seen["page"], seen["clipped"]) == (SHEET, []), name


def test_the_browser_test_finds_what_it_looks_for(tmp_path: Path) -> None:
    """Letters that are faint, small or off the screen, and an error of a script, are seen."""
    wrong = (
        '<p style="color:#bbb">faint</p><p style="font-size:7px">small</p><p style="white-space:nowrap">'
        + "wide " * 200
        + "</p><script>throw new Error('broken')</script></main>"
    )
    broken = {"wrong": PAGES["details"].replace("</main>", wrong, 1), "right": PAGES["details"]}
    every, console = opened(broken, [390], tmp_path, LIGHT)
    seen = every["wrong-390"]
    assert (every["right-390"]["faint"], every["right-390"]["errors"]) == ([], [])
    assert [said for said, _ in seen["faint"]][:1] == ["faint"]
    assert [said for said, _ in seen["small"]][:1] == ["small"]
    assert seen["clipped"]
    assert seen["page"] > 390
    assert any("broken" in error for error in seen["errors"])
    assert "CONSOLE" in console
