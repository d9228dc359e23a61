"""The manager under the name that the source gave it: `jostle manage`, with the same options."""

import sys

from jostle.cli.main import entry

sys.argv[1:1] = ["manage"]
entry()
