"""HTML and SVG as strings, and the frame of every page: self-contained, light and dark, printable, sortable.

Everything is escaped unless it was built here; a page is sorted without a server. Decision record 0010 says why there
is no template engine: it would double the layer for two pages.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rightsizer.domain.reason import clean_text, one_line

LONGEST = 100_000
"""Characters of one text on a page: a diff of a template fits, and so do the points of a course."""
STYLE = """
:root{--ink:#17211b;--soft:#5a675f;--paper:#fbfbf8;--card:#fff;--rule:#dfe4df;--accent:#0b6e4f;--wash:#0b6e4f22;
--warn:#a4480b;--bad:#b3261e;--good:#0b6e4f;--reserve:#8fbfae;--waste:#d9772b;--saved:#b9dccd;--idle:#e6ebe7;
color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--ink:#e9eee9;--soft:#a3afa7;--paper:#121714;--card:#1a211d;--rule:#313b35;
--accent:#5fd3a8;--wash:#5fd3a822;--warn:#f2a15f;--bad:#ff8a80;--good:#5fd3a8;--reserve:#2f6b56;--waste:#e08a3e;
--saved:#3d6e5c;--idle:#252d28}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1240px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:1.15rem;margin:40px 0 12px}
p{margin:0 0 10px}
.soft,.note{color:var(--soft)}
.note{font-size:.875rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:12px;margin:24px 0 8px}
.card{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:14px 16px}
.card b{display:block;font-size:1.4rem;line-height:1.25;font-variant-numeric:tabular-nums;letter-spacing:-.01em}
.card.main b{color:var(--accent)}.card.bad b{color:var(--bad)}
.card span{font-size:.85rem;color:var(--soft)}
.panel{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:16px}
.scroll{overflow-x:auto;background:var(--card);border:1px solid var(--rule);border-radius:8px}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;padding:9px 12px;border-bottom:1px solid var(--rule);vertical-align:top}
tr:last-child td{border-bottom:0}
th{font-weight:600;color:var(--soft);white-space:nowrap}
th button{all:unset;cursor:pointer;font:inherit;color:inherit}
th button:focus-visible,a:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:2px}
th[aria-sort=ascending] button::after{content:" \\2191"}
th[aria-sort=descending] button::after{content:" \\2193"}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.nowrap{white-space:nowrap}
.why{min-width:215px}.name{overflow-wrap:anywhere;min-width:140px;max-width:220px}
.tag{display:inline-block;padding:1px 8px;border-radius:99px;border:1px solid var(--rule)}
.tag{font-size:.8rem;white-space:nowrap}
.tag.good{color:var(--good);border-color:currentColor}.tag.bad{color:var(--bad);border-color:currentColor}
.tag.warn{color:var(--warn);border-color:currentColor}
code,pre{font:.85rem/1.5 ui-monospace,SFMono-Regular,Menlo,monospace}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}
a{color:var(--accent)}
.rest{all:unset;cursor:pointer;color:var(--accent);font-weight:600;padding:9px 12px}
.rest:focus-visible{outline:2px solid var(--accent);outline-offset:-2px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 20px;margin:0}
dt{color:var(--soft)}dd{margin:0}
svg{display:block;width:100%;height:auto}
td svg{width:150px;height:32px}
.area{fill:var(--wash);stroke:none}.line{fill:none;stroke:var(--accent);stroke-width:1.6;vector-effect:non-scaling-stroke}
.grid{stroke:var(--rule);stroke-width:1}.limit{stroke:var(--warn);stroke-width:1;stroke-dasharray:5 4}
.bars{display:grid;grid-template-columns:minmax(0,max-content) 1fr max-content;gap:8px 12px;align-items:center}
.bars span{color:var(--soft);overflow-wrap:anywhere}.bars i{display:block;height:18px;border-radius:3px}
.bars i{background:var(--accent);min-width:1px;print-color-adjust:exact}
.lead{font-size:1.5rem;line-height:1.3;margin:20px 0 10px;max-width:52rem;letter-spacing:-.01em}
.alert{color:var(--bad);font-weight:600}
@media(min-width:960px){.two{display:grid;grid-template-columns:1fr 1fr;gap:12px}.two figure{margin:0}}
figure{margin:12px 0}figcaption{font-weight:600;margin-bottom:8px}figcaption .note{font-weight:400}
details{margin:12px 0}summary{cursor:pointer;color:var(--accent)}section>details>summary,.fold>summary{font-weight:600}
td details{margin:4px 0 0}summary:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;margin:0 0 10px;font-size:.875rem;color:var(--soft);align-items:center}
.legend span{white-space:nowrap}.key{display:inline-block;width:13px;height:13px;border-radius:3px;margin:0 6px -1px 0}
.used{background:var(--accent)}.kept{background:var(--reserve)}.lost{background:var(--waste)}.saved{background:var(--saved)}
.dim,.gap{background:repeating-linear-gradient(45deg,var(--rule) 0 3px,transparent 3px 7px)}
.days{display:flex;gap:3px;height:180px;align-items:stretch;border-bottom:1px solid var(--rule);margin-bottom:26px}
.days>div{flex:1 1 0;min-width:0;display:flex;flex-direction:column;justify-content:flex-end;position:relative}
.days i{display:block;min-height:0}.tick{position:absolute;top:100%;left:0;font-size:.8rem;color:var(--soft)}
.tick.quiet{display:none}
.stack{display:flex;height:18px;min-width:40px}.stack i{border-radius:0!important;min-width:0!important}
.stack .used{background:var(--accent)}.stack .kept{background:var(--reserve)}.stack .lost{background:var(--waste)}
.stack .dim{background:repeating-linear-gradient(45deg,var(--rule) 0 3px,transparent 3px 7px)}
.week{display:grid;grid-template-columns:2.6rem repeat(24,minmax(0,1fr));gap:2px;font-size:.8rem;color:var(--soft)}
.week i{height:20px;border-radius:2px}.week span{white-space:nowrap}
.week i:not(.gap){background:color-mix(in srgb,var(--accent) var(--load),var(--idle))}
.heat0{background:var(--idle)}.heat1{background:var(--accent)}
.days i,.stack i,.week i,.key{print-color-adjust:exact}
@media screen and (max-width:640px){.scroll{overflow:visible;border:0;background:none}thead{display:none}
table,tbody,tr{display:block}tr{background:var(--card);border:1px solid var(--rule);border-radius:8px}
tbody tr{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));grid-auto-flow:dense;gap:4px 12px}
tbody tr{padding:8px 12px;margin-bottom:8px}
td,tr:last-child td{display:block;border:0;padding:0}.why,.name,td:first-child{grid-column:1/-1}
td{text-align:left!important;white-space:normal!important;overflow-wrap:anywhere}
td::before{content:attr(data-label);display:block;color:var(--soft);font-size:.8rem;line-height:1.3}
td.name::before{display:none}td:empty{display:none}
.why,.name{min-width:0;max-width:none}.card b{font-size:1.2rem}.bars{font-size:.85rem}
.lead{font-size:1.25rem}tbody tr[hidden]{display:none}
.week{grid-template-columns:2rem repeat(24,minmax(0,1fr));gap:1px}.days{height:140px;gap:2px}
.bars.wide{grid-template-columns:1fr max-content;gap:2px 10px}.bars.wide>span{grid-column:1/-1;margin-top:6px}
dl{grid-template-columns:1fr}dd{margin-bottom:8px;overflow-wrap:anywhere}}
@media print{:root{--ink:#000;--soft:#444;--paper:#fff;--card:#fff;--rule:#bbb;--accent:#0b6e4f;--wash:#0b6e4f22}
html{font-size:11px}body{font-size:1rem}main{max-width:none;padding:0}.scroll{overflow:visible}tr,.card,.panel{break-inside:avoid}
tr[hidden]{display:table-row}.rest{display:none}
h2{break-after:avoid}th button::after{content:""!important}.why{min-width:0}.name{min-width:92px}td svg{width:72px}
th,td{padding-left:6px;padding-right:6px}th,th button{white-space:normal}}
"""

SCRIPT = """
for(const table of document.querySelectorAll('table')){const body=table.tBodies[0];
const heads=[...table.querySelectorAll('th')].map(th=>th.textContent);
for(const row of body.rows)[...row.cells].forEach((cell,index)=>{cell.dataset.label=heads[index]});
let shown=Number(table.dataset.first)||Infinity;
const cut=()=>[...body.rows].forEach((row,index)=>{row.hidden=index>=shown});
if(shown<body.rows.length){const rest=document.createElement('button');rest.className='rest';rest.type='button';
rest.textContent=`Show all ${body.rows.length}`;
rest.addEventListener('click',()=>{shown=Infinity;cut();rest.remove()});table.after(rest);cut()}
table.querySelectorAll('th button').forEach(button=>button.addEventListener('click',()=>{
const head=button.closest('th'),column=head.cellIndex,was=head.getAttribute('aria-sort');
table.querySelectorAll('th').forEach(th=>th.removeAttribute('aria-sort'));
const key=row=>{const cell=row.cells[column];return cell.dataset.key??cell.textContent.trim().toLowerCase()};
const figures=[...body.rows].every(row=>!Number.isNaN(Number(key(row))));
const up=was?was!=='ascending':!figures;
head.setAttribute('aria-sort',up?'ascending':'descending');
[...body.rows].sort((a,b)=>{const x=key(a),y=key(b),n=Number(x)-Number(y);
return (Number.isNaN(n)?x.localeCompare(y):n)*(up?1:-1)}).forEach(row=>body.append(row));cut()}))}
"""

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
"""The page loads nothing and sends nothing, whatever a name in it says."""


class Markup(str):
    """Text that is markup already. Only `tag` and `join` make it."""

    __slots__ = ()


type HtmlNode = Markup | str | int | float | None

VOID = frozenset({"meta", "br", "line", "rect", "path", "polyline", "circle"})


def tag(element: str, /, *children: HtmlNode, **attributes: str | int | float | bool | None) -> Markup:
    """An element. Plain text is escaped, None is left out; ``class_`` is class, and ``aria_label`` is aria-label."""
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if element in VOID and not children:
        return Markup(f"<{element}{given}>" if element in {"meta", "br"} else f"<{element}{given}/>")
    return Markup(f"<{element}{given}>{join(*children)}</{element}>")


def join(*children: HtmlNode) -> Markup:
    """Nodes one after the other."""
    return Markup("".join(_node(child) for child in children))


def raw(constant: str) -> Markup:
    """A constant of this package as it is: style sheet and script. Never anything that came from outside."""
    return Markup(constant)


def _node(child: HtmlNode) -> str:
    if child is None:
        return ""
    return str(child) if isinstance(child, Markup) else escape(clean_text(str(child), LONGEST))


def _attribute(key: str, value: str | int | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-") if key not in {"viewBox", "preserveAspectRatio"} else key
    return f" {name}" if value is True else f' {name}="{escape(one_line(str(value), LONGEST))}"'


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what is shown, what it is sorted by, and its class."""

    shown: HtmlNode
    key: str | float | None = None
    look: str | None = None


def page(title: str, *content: HtmlNode) -> str:
    """A whole document."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", raw(STYLE)),
    )
    body = tag("body", tag("main", *content), tag("script", raw(SCRIPT)))
    return "<!doctype html>\n" + tag("html", head, body, lang="en") + "\n"


def section(title: str, *content: HtmlNode) -> Markup:
    """A headed part."""
    return tag("section", tag("h2", title), *content)


def folded(title: str, *content: HtmlNode) -> Markup:
    """A part that opens on a click."""
    return tag("details", tag("summary", title), *content)


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], empty: str, first: int = 0) -> Markup:
    """A sortable table; `caption` is for screen readers, `empty` is said instead of a table without rows.

    With `first`, a button shows the rows after so many; on paper, and where no script runs, all are shown.
    """
    if not rows:
        return tag("p", empty, class_="soft")
    looks = [cell.look for cell in rows[0]]
    head = [
        tag("th", tag("button", name, type="button"), scope="col", class_="n" if look == "n" else None)
        for name, look in zip(heads, looks, strict=True)
    ]
    body = [tag("tr", *(tag("td", c.shown, class_=c.look, data_key=c.key) for c in row)) for row in rows]
    inside = tag(
        "table", tag("thead", tag("tr", *head)), tag("tbody", *body), aria_label=caption, data_first=first or None
    )
    return tag("div", inside, class_="scroll", tabindex=0, role="region", aria_label=caption)


def card(name: str, figure: str, look: str = "") -> Markup:
    """One figure with its name."""
    return tag("div", tag("b", figure), tag("span", name), class_=f"card {look}".strip())


def bars(rows: Sequence[tuple[str, float, str]], label: str) -> Markup:
    """Horizontal bars: name, length, and what is written behind it. `label` is for screen readers."""
    top = max((value for _, value, _ in rows), default=0.0)
    drawn = [
        join(tag("span", name), tag("i", style=f"width:{_share(value, top):.1f}%"), tag("b", text))
        for name, value, text in rows
    ]
    return tag("div", *drawn, class_="bars", role="img", aria_label=label)


def _share(value: float, top: float) -> float:
    """Percent of the longest bar; what is not finite, or below zero, has no length."""
    return 100 * max(0.0, value) / top if top > 0 and math.isfinite(top) and math.isfinite(value) else 0.0


def facts(pairs: Sequence[tuple[str, HtmlNode]]) -> Markup:
    """Names and what belongs to them."""
    return tag("dl", *(join(tag("dt", name), tag("dd", said)) for name, said in pairs))


def badge(text: str, look: str = "") -> Markup:
    """A short word with a frame."""
    return tag("span", text, class_=f"tag {look}".strip())
