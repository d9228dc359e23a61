"""jostle runs experiments on GPUs that must be competed for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jostle.api import Batch, Failed, gpus, submit

__version__ = "0.2.0"
__all__ = ["Batch", "Failed", "__version__", "gpus", "submit"]


def __getattr__(name: str) -> object:
    """The calls for programs are loaded when they are used: the command line starts without them."""
    if name in __all__:
        from jostle import api

        return getattr(api, name)
    raise AttributeError(f"module 'jostle' has no attribute {name!r}")


def load_ipython_extension(shell: object) -> None:
    """`%load_ext jostle`: cells that begin with `%%jostle` run as jobs."""
    from jostle.magic import load

    load(shell)
