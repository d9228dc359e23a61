"""How does the console's page feel? In a real browser (chromium, headless, by playwright), on this machine.

First look: bytes as they came, and the time from the address until the cards are there. Idle: requests, and the web
process's processor time and memory, while nothing happens and a job waits. Table: 10,000 jobs, scrolled by 120 pixels a
frame, and the processor time that a frame takes. Log: one of 1 GB, from the click until its last line is there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from audience import Web, console
from figures import Row, below, hold_against
from lab import Lab
from peers.base import Missing, Peer
from peers.ours import Jostle
from scene import cpu_seconds, pss_mib, until
from tasks import Sheet, quantile

GROUP = "console: its page in chromium"
MANY, SCROLLED = 10_000, 300  # jobs, frames
LAST = "this is the last line"
LINE = b"epoch 12 step 3456 loss 0.123456 lr 1e-4 memory 12345 MiB 789 images/s and some more words on the line\n"

CARDS = "() => document.querySelector('.card') && document.querySelector('.badge:not(.joining)') && performance.now()"
SHOWS = "([where, text]) => document.querySelector(where)?.textContent.includes(text)"
LOADED = """() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .filter((entry) => entry.name.includes('/ui/')).reduce((sum, entry) => sum + entry.encodedBodySize, 0)"""
SCROLL = """(frames) => new Promise((done) => {
    const place = document.querySelector('.list .scroll'), took = []
    let before = performance.now()
    const step = (now) => {
        took.push(now - before)
        before = now
        place.scrollTop += 120
        if (took.length < frames) requestAnimationFrame(step)
        else done({ took: took.slice(1), rows: document.querySelectorAll('.vrow').length })
    }
    requestAnimationFrame(step)
})"""


def measure(lab: Lab) -> list[Row]:
    if not lab.named("jostle"):
        return []
    rows: list[Row] = []
    for what in (first_look, idle, log, table):
        lab.attempt(f"page, {what.__name__.replace('_', ' ')}", Jostle, 8, False, staged(lab, what, rows))
    return rows


def staged(lab: Lab, what: Callable[..., list[Row]], rows: list[Row]) -> Callable[[Peer], None]:
    def act(peer: Peer) -> None:
        assert isinstance(peer, Jostle)
        with console(peer) as web, browser() as context:
            rows.extend(what(lab, peer, web, context))

    return act


@contextmanager
def browser() -> Iterator[Any]:
    from tests.browser import chromium

    try:
        from playwright.sync_api import sync_playwright
    except ImportError as e:
        raise Missing("no playwright: pip install playwright") from e
    if (found := chromium.path()) is None:
        raise Missing(f"no chromium: {chromium.INSTALL}")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found, args=chromium.FLAGS)
        yield made.new_context(viewport={"width": 1440, "height": 900}, locale="en-US")
        made.close()


def opened(web: Web, context: Any, path: str = "") -> tuple[Any, float]:
    """A page that is logged in and shows the cards, and the ms that this took."""
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(web.address())
    took = float(page.wait_for_function(CARDS).json_value())
    if path:
        page.goto(f"http://localhost:{web.port}/ui/{path}")
    return page, took


def first_look(lab: Lab, peer: Jostle, web: Web, context: Any) -> list[Row]:
    page, cold = opened(web, context)
    size = Row(group=GROUP, what="first load, gzip", unit="kB", ours=page.evaluate(LOADED) / 1e3)
    warm = []
    for _ in range(lab.size(5, 2)):
        page.reload()
        warm.append(float(page.wait_for_function(CARDS).json_value()))
    return [
        hold_against(size, "<= 400 kB", below(size.ours, 400.0)),
        Row(group=GROUP, what="until the cards are there, first time", unit="ms", ours=cold),
        Row(group=GROUP, what="until the cards are there, again", unit="ms", ours=quantile(warm, 0.5)),
    ]


def idle(lab: Lab, peer: Jostle, web: Web, context: Any) -> list[Row]:
    request = peer.request(Sheet(peer.scene.path("sheet")).tasks(1))
    request["jobs"][0]["gpus"] = [9, 9]
    peer.ask(request)
    page, _ = opened(web, context)
    page.wait_for_timeout(3000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    before, began, window = cpu_seconds(web.pid), time.monotonic(), lab.size(30, 10)
    page.wait_for_timeout(window * 1000)
    took, used = time.monotonic() - began, cpu_seconds(web.pid) - before
    requests = Row(group=GROUP, what="idle page: requests", unit="per s", ours=len(asked) / took)
    share = Row(group=GROUP, what="idle page: web process", unit="% of a core", ours=100 * used / took)
    memory = Row(group=GROUP, what="idle page: web process, PSS", unit="MiB", ours=pss_mib(web.pid))
    return [
        hold_against(requests, "<= 1", below(requests.ours, 1.0)),
        hold_against(share, "<= 1 %", below(share.ours, 1.0)),
        hold_against(memory, "<= 80 MiB", below(memory.ours, 80.0)),
    ]


def table(lab: Lab, peer: Jostle, web: Web, context: Any) -> list[Row]:
    peer.exclude(True)
    peer.submit(Sheet(peer.scene.path("sheet")).tasks(MANY))
    page, _ = opened(web, context, "state")
    began = time.monotonic()
    page.wait_for_function(SHOWS, arg=[".listhead", f"{MANY} of {MANY}"])
    listed = time.monotonic() - began
    page.wait_for_timeout(1000)
    before = drawing(context)
    told = page.evaluate(SCROLL, SCROLLED)
    used, took = drawing(context) - before, told["took"]
    group = f"{GROUP}: {MANY:,} jobs in the table"
    slow = Row(group=group, what="frames over 50 ms", unit="%", ours=100 * sum(ms > 50 for ms in took) / len(took))
    return [
        Row(group=group, what="until all are listed", unit="ms", ours=listed * 1e3),
        Row(group=group, what="rows in the page", unit="", ours=told["rows"]),
        Row(group=group, what="frame while it scrolls, median", unit="ms", ours=quantile(took, 0.5)),
        Row(group=group, what="frame while it scrolls, p95", unit="ms", ours=quantile(took, 0.95)),
        hold_against(slow, "<= 5 %", below(slow.ours, 5.0)),
        Row(group=group, what="frame while it scrolls, all of chromium", unit="ms CPU", ours=used / SCROLLED * 1e3),
    ]


def drawing(context: Any) -> float:
    """Processor seconds of chromium so far: frames are late on a busy machine, whatever the page costs."""
    told = context.browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    return sum(float(process["cpuTime"]) for process in told["processInfo"])


def log(lab: Lab, peer: Jostle, web: Web, context: Any) -> list[Row]:
    size = lab.size(1 << 30, 1 << 28)
    sheet = Sheet(peer.scene.path("sheet"))
    peer.submit(sheet.tasks(1))
    sheet.wait(1, 30.0)
    until(lambda: peer.ask({"op": "hello"})["counts"].get("succeeded"), 10.0, "its end")
    write(os.path.join(peer.home, "runs", "1.1", "log"), size)
    page, _ = opened(web, context)
    began = time.monotonic()
    page.goto(f"http://localhost:{web.port}/ui/state/1")
    page.wait_for_function(SHOWS, arg=[".loglines", LAST])
    took = time.monotonic() - began
    what = f"a log of {size / (1 << 30):g} GiB, until its last line shows"
    return [Row(group=GROUP, what=what, unit="ms", ours=took * 1e3)]


def write(path: str, size: int) -> None:
    block = LINE * ((1 << 20) // len(LINE))
    with open(path, "ab") as f:
        while f.tell() < size:
            f.write(block)
        f.write(LAST.encode() + b"\n")
