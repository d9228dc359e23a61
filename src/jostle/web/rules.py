"""The settings of a workspace (`config/gpu_manage.yaml`, SPEC A9), as the page of the source system and a form know them.

Rules: only what differs is written, and comments, order and quotes stay. Nothing is saved that would not be read back as it was
meant. What names a place on the disk is not changed from a browser (RELIABILITY S51).
"""

from __future__ import annotations

import os
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header
from fastapi.responses import Response

from jostle.errors import Forbidden, Invalid
from jostle.formats import gpumanage, plaintext, processyaml, workspace, yamledit
from jostle.formats.flaws import BadFiles
from jostle.formats.nodes import Flaw
from jostle.web import files
from jostle.web.answers import Answer, Values, etag
from jostle.web.site import Visit, visit, workspace_of
from jostle.wording.flaws import flaw, worded

routes = APIRouter()
Visiting = Annotated[Visit, Depends(visit)]
USUAL = workspace.SETTINGS[0]


class RulesFile:
    """The file of one workspace."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.name = next((name for name in workspace.SETTINGS if os.path.lexists(os.path.join(root, name))), USUAL)
        self.path = os.path.join(root, self.name)
        self.raw = files.content(root, self.name)
        try:
            self.text, self.encoding = plaintext.decoded(self.raw or b"")
        except Flaw as e:
            raise BadFiles([(self.path, e.line, e.text)]) from None

    @property
    def etag(self) -> str:
        return etag(self.raw)

    def read(self, text: str) -> tuple[gpumanage.Settings, list[str], list[tuple[str, int, str]]]:
        """The settings that a text says, warnings, and what is wrong with it."""
        return gpumanage.read(self.path, text)

    def values(self, text: str | None = None) -> dict[str, Any]:
        """Every key, as the file has it or by its default; those of retry_config below it."""
        settings = self.read(self.text if text is None else text)[0]
        by_key: dict[str, Any] = {}
        for key in gpumanage.KEYS:
            head, _, tail = key.partition(".")
            if key != "launch_delay":
                value = getattr(settings, tail or head)
                value = list(value) if isinstance(value, tuple) else value
                (by_key.setdefault(head, {}) if tail else by_key)[tail or head] = value
        return by_key

    def own_values(self) -> dict[str, Any]:
        """What the file itself says."""
        return processyaml.values(self.text, self.path)

    def changed(self, form: dict[str, Any]) -> str:
        """The text with these values; Invalid or BadFiles if it cannot be, or would be wrong."""
        now, own, text = flat(self.values()), self.own_values(), self.text
        wanted = processyaml.values(text, self.path)
        for key, value in flat(form).items():
            if key not in gpumanage.KEYS:
                raise Invalid(f"there is no key {key[:100]}; expected one of {', '.join(gpumanage.KEYS)}")
            if key in now and same(value, now[key]):
                continue  # also what the file does not say: a form sends everything back
            if key in gpumanage.PLACES:
                raise Forbidden(f"{key} names a place on the disk: it is changed in {self.name}, not from a browser")
            words = tuple(key.split("."))
            processyaml.put(wanted, words, value)
            text = yamledit.updated(text, words, value)
        if processyaml.values(text, self.path) != wanted:
            raise Invalid(flaw("rules_by_hand", keys=", ".join(flat(form)), file=self.name, text=own))
        flaws = self.read(text)[2]
        if flaws:
            raise BadFiles(flaws)
        return text

    def save(self, text: str, seen: str | None) -> None:
        new = text.encode(self.encoding)
        files.save(self.root, self.name, new, seen=seen, backup=os.path.basename(self.name) + ".backup")
        self.raw, self.text = new, text


def same(one: Any, other: Any) -> bool:
    """5 is 5.0, as a browser sends it, and true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def flat(values: dict[str, Any]) -> dict[str, Any]:
    """Keys with a dot for those of retry_config."""
    dotted: dict[str, Any] = {}
    for key, value in values.items():
        if key == gpumanage.RETRY and isinstance(value, dict):
            dotted |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            dotted[key] = value
    return dotted


@routes.get("/api/config")
def config(visit: Visiting, workspace: str | None = None) -> Response:
    rules = RulesFile(workspace_of(visit.site, workspace))
    return Answer(shown(visit, rules.values()), headers={"ETag": rules.etag})


def shown(visit: Visit, values: dict[str, Any]) -> dict[str, Any]:
    """Who may only look sees rules, not places."""
    return {key: value for key, value in values.items() if not (visit.caller.reads_only and key in gpumanage.PLACES)}


@routes.put("/api/config")
def save(
    visit: Visiting, body: Values, workspace: str | None = None, if_match: Annotated[str | None, Header()] = None
) -> Response:  # fmt: skip
    rules = RulesFile(workspace_of(visit.site, workspace))
    text = rules.changed(body)
    if text != rules.text or if_match is not None:
        rules.save(text, if_match)
        visit.note("rules", f"{rules.path}: {', '.join(flat(body))}")
    return Answer({"status": "ok", "data": rules.values()}, headers={"ETag": rules.etag})


@routes.get("/api/v1/rules")
def rules_of(visit: Visiting, workspace: str | None = None) -> Response:
    """For a form: the values, which of them the file says itself, and what is wrong with it."""
    visit.must_see_files()
    rules = RulesFile(workspace_of(visit.site, workspace))
    _, warnings, flaws = rules.read(rules.text)
    answer = {
        "values": rules.values(), "said": sorted(flat(rules.own_values())) if not flaws else [], "text": rules.text,
        "flaws": [{"line": line, "text": worded(text, visit.language)} for _, line, text in flaws],
        "warnings": [worded(text, visit.language) for text in warnings], "path": rules.path, "exists": rules.raw is not None,
        "fixed": list(gpumanage.PLACES),
    }  # fmt: skip
    return Answer(answer, headers={"ETag": rules.etag})
