"""jostle runs experiments on GPUs that must be competed for."""

__version__ = "0.1.0"
