"""The program of the manager's template (SPEC C5), as a command for bash.

`{gpu_list}` is put in when the program starts, from `CUDA_VISIBLE_DEVICES`: so it is right again when the program begins anew on
other cards. Arguments and variables are quoted whatever is in them; the command itself is shell text, as its author wrote it.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from jostle.core.runvariables import VISIBLE
from jostle.errors import Usage
from jostle.formats.managerfile import NAME, ManagerConfig, TaskTemplate
from jostle.intake import allocations
from jostle.manage.loading import of_engine

if TYPE_CHECKING:
    from jostle.session import Session

CARDS = "{gpu_list}"


class Program(NamedTuple):
    command: str
    env: dict[str, str]
    retry: dict[str, int] | None


def program(session: Session, config: ManagerConfig) -> Program:
    """Usage if the file names none."""
    if not config.program_template.command:
        code = "manage_no_program" if config.path else "manage_no_file"
        raise Usage(session.message(code, file=config.path or NAME))
    retry = config.program_template.retry
    return Program(command(config), environment(config), {"max": retry} if retry else None)


def command(config: ManagerConfig) -> str:
    template = config.program_template
    words = [template.command.replace(CARDS, f"${{{VISIBLE}}}"), *map(_word, template.args)]
    return "\n".join([*_exports(template), " ".join(words)])


def environment(config: ManagerConfig) -> dict[str, str]:
    """The variables that do not name the cards. Which cards a program sees is not for them to say."""
    return {name: text for name, text in config.program_template.env_vars.items() if CARDS not in text and name != VISIBLE}


def of_task(session: Session, name: str) -> Program:
    """What `start` runs in an allocation where no program is given: that of the file that was loaded last."""
    allocations.of_name(session, name)  # that it is not there is told before anything else
    config = of_engine(session)
    if not config.program_template.command:
        raise Usage(session.message("alloc_no_program", name=name))
    tell_if_it_stays(session, config, name)
    return program(session, config)


def tell_if_it_stays(session: Session, config: ManagerConfig, name: str) -> None:
    """A file that asks for growth as the source's does, without saying how its program takes part (C8): what that means."""
    asked = config.written & {"auto_scale", "scaling"} and config.auto_scale and config.scaling.enabled
    if asked and not config.scaling.resize:
        session.tell("manage_stays", name=name, file=config.path)


def thresholds(config: ManagerConfig) -> dict[str, int]:
    """When it grows and shrinks by its load, as rules of its batch."""
    scaling = config.scaling
    return {"scale_up": round(100 * scaling.scale_up_threshold), "scale_down": round(100 * scaling.scale_down_threshold)}


def _exports(template: TaskTemplate) -> list[str]:
    named = [(name, text) for name, text in template.env_vars.items() if CARDS in text and name != VISIBLE]
    return [f"export {quote(name)}={_word(text)}" for name, text in named]


def _word(text: str) -> str:
    """One argument, with the cards in their place."""
    parts = [quote(part) if part else "" for part in text.split(CARDS)]
    return f'"${{{VISIBLE}}}"'.join(parts) or "''"
