"""Job files, for an editor (`/api/v1/jobfiles`): which there are, their text, what of it would be queued (RELIABILITY S51–S54).

Rules: a file is one of YAML in a known workspace or beside a file that was run, which the store knows; settings and what begins
with a dot are none. Nothing is saved over what the writer has not seen, or with an error; what it was is kept beside it. A text
is looked at in a process of its own, with an end to its time and memory (S30, S57).
"""

from __future__ import annotations

import os
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from jostle.errors import JostleError, NotFound
from jostle.formats import workspace, yamlfile
from jostle.formats.flaws import BadFiles
from jostle.formats.nodes import Flaw
from jostle.store import batchreads
from jostle.web import files
from jostle.web.answers import Answer, etag
from jostle.web.children import OFTEN, perform
from jostle.web.site import Visit, known_workspaces, visit
from jostle.wording.flaws import flaw

routes = APIRouter(prefix="/api/v1/jobfiles")
Visiting = Annotated[Visit, Depends(visit)]
Path = Annotated[str, Query(min_length=1, max_length=4096)]
SUFFIXES = (".yaml", ".yml")
SETTINGS = frozenset(map(os.path.basename, (*workspace.SETTINGS, "config/control_setting.yaml")))  # not for this door
LARGEST = 1 << 20  # bytes of a text that a person edits
BACKUP = ".backup"
LISTED = 500  # files of one folder


class Text(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    text: str = Field(max_length=LARGEST)


def roots(visit: Visit) -> dict[str, bool]:
    """The folders that job files lie in, and whether what lies below them counts, too."""
    known = {os.path.dirname(file): False for file in batchreads.files(visit.reader) if _is_job_file(file)}
    return {**known, **{os.path.abspath(root): True for root in known_workspaces(visit.site)}}


def _is_job_file(path: str) -> bool:
    name = os.path.basename(path)
    return path.startswith("/") and name.endswith(SUFFIXES) and name not in SETTINGS and not name.startswith(".")


class JobFile:
    """One file, as it is on the disk."""

    def __init__(self, visit: Visit, path: str) -> None:
        self.visit, self.path = visit, path
        self.root, self.way = confined(visit, path)
        self.raw = files.content(self.root, self.way)
        if self.raw is not None and len(self.raw) > LARGEST:
            raise JostleError(flaw("file_too_large", path=path, mib=LARGEST >> 20))

    @property
    def etag(self) -> str:
        return etag(self.raw)

    def text(self) -> str:
        try:
            return yamlfile.decoded(self.raw or b"")
        except Flaw as e:
            raise BadFiles([(self.path, e.line, e.text)]) from None

    def draft(self, text: str) -> dict[str, Any]:
        """What is wrong with a text in its place, or what of it would be queued; and how it differs from what is saved."""
        texts = {"file": self.path, "saved": self.text(), "text": text}
        return perform(self.visit, "preview", texts, bounds=OFTEN, name="run --dry-run")

    def save(self, text: str, seen: str) -> None:
        """With the line ends that it had."""
        windows = self.raw is not None and b"\r\n" in self.raw and self.raw.count(b"\n") == self.raw.count(b"\r\n")
        new = (text.replace("\n", "\r\n") if windows else text).encode()
        files.save(self.root, self.way, new, seen=seen, backup=os.path.basename(self.path) + BACKUP)
        self.raw = new
        self.visit.note("save", self.path)


def confined(visit: Visit, path: str) -> tuple[str, str]:
    """The folder that a path lies in, and the way from there; NotFound if it is none of ours."""
    if not path.isprintable() or os.path.normpath(path) != path or not _is_job_file(path):
        raise NotFound(flaw("asked_job_file"))
    folder = os.path.dirname(path)
    for root, below in roots(visit).items():
        if folder == root or (below and folder.startswith(root + os.sep)):
            way = os.path.relpath(path, root)
            if not any(step.startswith(".") for step in way.split(os.sep)):
                return root, way
    raise NotFound(flaw("file_unknown"))


@routes.get("")
def listed(visit: Visiting) -> dict[str, Any]:
    """Those that were run, the newest first; then what lies beside them."""
    visit.must_see_files()
    ran, folders = batchreads.files(visit.reader), roots(visit)
    dates = {path: changed for folder in folders for path, changed in _in(folder)}
    order = [path for path in ran if path in dates] + sorted(path for path in dates if path not in ran)
    rows = [
        {"path": path, "name": os.path.basename(path), "folder": os.path.dirname(path), "batch": ran.get(path),
         "modified_at": dates[path]}
        for path in order
    ]  # fmt: skip
    return {"files": rows, "folders": [folder for folder in folders if os.path.isdir(folder)]}


def _in(folder: str) -> list[tuple[str, float]]:
    rows = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _is_job_file(entry.path) and entry.is_file(follow_symlinks=False):
                    rows.append((entry.path, entry.stat(follow_symlinks=False).st_mtime))
                    if len(rows) == LISTED:
                        break
    except OSError:
        pass  # a folder that is no more, or not to be read
    return rows


@routes.get("/text")
def text_of(visit: Visiting, path: Path) -> Response:
    visit.must_see_files()
    file = JobFile(visit, path)
    answer = {
        "path": path, "text": file.text(), "exists": file.raw is not None,
        "backup": files.content(file.root, file.way + BACKUP) is not None,
    }  # fmt: skip
    return Answer(answer, headers={"ETag": file.etag})


@routes.put("/text")
def save_text(request: Request, visit: Visiting, path: Path, body: Text) -> Response:
    seen = request.headers.get("if-match")
    if seen is None:
        return Answer({"detail": "If-Match is needed: the ETag of what you have seen", "code": "invalid"}, 428)
    file = JobFile(visit, path)
    draft = file.draft(body.text)
    own = [(path, flaw["line"] or 0, flaw["text"]) for flaw in draft["flaws"] if flaw["file"] == path]
    if own:
        raise BadFiles(own)
    file.save(body.text, seen)
    return Answer({"path": path, **draft}, headers={"ETag": file.etag})


@routes.post("/preview")
def preview(visit: Visiting, path: Path, body: Text) -> dict[str, Any]:
    """What is wrong with the text, at which lines; or what of it would be queued, and how it differs from what is saved."""
    return {"path": path, **JobFile(visit, path).draft(body.text)}
