"""The workspace of `jostle compete`: task files, settings and logs of one directory, turned into a batch of the engine and kept
beside it. Nothing here schedules: the engine does."""
