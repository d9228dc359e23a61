from hypothesis import HealthCheck, settings

settings.register_profile("core", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("core")
