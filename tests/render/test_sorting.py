"""A click on a column of figures shows the largest first, one on a column of names the first of the alphabet."""

import json
import shutil
import subprocess

import pytest

from rightsizer.render.html import SCRIPT

NODE = shutil.which("node")
PAGE = """
const cell=(key,text)=>({dataset:key===null?{}:{key},textContent:text});
const rows=%s.map(([name,usd])=>({name,cells:[cell(null,name),cell(usd,'$'+usd)]}));
let shown=rows.map(row=>row.name);
const body={rows,append:row=>shown.push(row.name)};
const head=(index,text)=>{const th={cellIndex:index,textContent:text,set:null,getAttribute:()=>th.set,
setAttribute:(_,value)=>{th.set=value},removeAttribute:()=>{th.set=null}};
const button={closest:()=>th,addEventListener:(_,act)=>{th.click=act}};th.button=button;return th};
const heads=[head(0,'Endpoint'),head(1,'Saving')];
let rest={};
const table={dataset:%s,after:made=>{},tBodies:[body],
querySelectorAll:what=>what==='th'?heads:heads.map(th=>th.button)};
globalThis.document={querySelectorAll:()=>[table],createElement:()=>rest};
rest.addEventListener=(_,act)=>{rest.click=act};rest.remove=()=>{rest.gone=true};
%s
const seen=%s.map(column=>{shown=[];heads[column].click();return [shown,heads[column].set]});
console.log(JSON.stringify(seen));
"""
ENDPOINTS = [["chat", "90"], ["ads", "1500"], ["search", "300"]]


@pytest.mark.skipif(NODE is None, reason="needs node, which runs the script of the page")
def test_the_first_click_shows_the_largest_figure_or_the_first_name() -> None:
    clicks = [1, 1, 0]
    page = PAGE % (json.dumps(ENDPOINTS), "{}", SCRIPT, json.dumps(clicks))
    done = subprocess.run([str(NODE), "-e", page], capture_output=True, text=True, check=True)
    money, again, names = json.loads(done.stdout)
    assert money == [["ads", "search", "chat"], "descending"]
    assert again == [["chat", "search", "ads"], "ascending"]
    assert names == [["ads", "chat", "search"], "ascending"]


@pytest.mark.skipif(NODE is None, reason="needs node, which runs the script of the page")
def test_a_long_table_shows_its_first_rows_until_a_button_shows_all() -> None:
    begins, _, _ = PAGE.partition("const seen")
    seen = "const hidden=()=>rows.map(row=>row.hidden);const before=hidden();rest.click();"
    page = begins % (json.dumps(ENDPOINTS), '{first:"2"}', SCRIPT)
    said = "console.log(JSON.stringify([before,rest.textContent,hidden(),rest.gone]));"
    done = subprocess.run([str(NODE), "-e", page + seen + said], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[False, False, True], "Show all 3", [False, False, False], True]


@pytest.mark.skipif(NODE is None, reason="needs node, which runs the script of the page")
def test_a_table_of_no_more_rows_than_it_shows_has_no_button() -> None:
    begins, _, _ = PAGE.partition("const seen")
    page = begins % (json.dumps(ENDPOINTS), '{first:"3"}', SCRIPT)
    done = subprocess.run([str(NODE), "-e", page + "console.log(typeof rest.click)"], capture_output=True, text=True)
    assert done.stdout.strip() == "undefined"
