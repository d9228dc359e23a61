from tests.e2e.conftest import instance, make_instance, shared

__all__ = ["instance", "make_instance", "shared"]
