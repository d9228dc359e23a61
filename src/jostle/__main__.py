"""`python -m jostle` is the command `jostle`."""

from jostle.cli.main import entry

entry()
