"""`jostle clean`: removes what long finished jobs left behind."""

from __future__ import annotations

import time

from jostle import units
from jostle.cli.parse import Namespace, Parser, checked
from jostle.cli.terminal import Terminal


def clean_options(p: Parser) -> None:
    p.example("""
        jostle clean --dry-run
        jostle clean --older-than 7d""")
    older = p.add_argument("--older-than", metavar="TIME", type=checked(units.seconds), default=30 * 86400.0)
    older.help = "what ended, or happened, longer ago than this (default 30d)"
    p.add_argument("--dry-run", action="store_true", help="only say what would be removed")


def clean(args: Namespace, terminal: Terminal) -> int:
    from jostle import cleaning

    cleaned = cleaning.clean(terminal, time.time() - args.older_than, dry_run=args.dry_run)
    cleaning.tell(cleaned, terminal, dry_run=args.dry_run)
    return 0
