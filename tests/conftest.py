"""Settings that all tests share."""

from hypothesis import HealthCheck, settings

# A busy machine is no reason to fail: properties are about values, and never about time.
settings.register_profile("discreet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("discreet")
