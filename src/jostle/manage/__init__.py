"""The resource manager of the source (SPEC C1, C5, C6, C9, C12): its file, its commands, its status, and the floor it keeps."""
