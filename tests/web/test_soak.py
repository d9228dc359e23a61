"""Many listen while much happens, in short; `make soak` is the long form."""

import asyncio

from tests.web.soak import Soak


def test_nothing_is_lost_to_150_streams_and_the_engine_does_not_notice_what_becomes_of_the_console(make_console):
    soak = Soak(make_console())
    asyncio.run(soak.run(seconds=0, each=16))
    print("\n".join(soak.told))
    soak.judge()
