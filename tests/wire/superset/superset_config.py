"""Superset as the test runs it: a metadata database of its own, nothing remembered."""

import os

SECRET_KEY = "for one test, and thrown away"
SQLALCHEMY_DATABASE_URI = f"sqlite:///{os.environ['STEPS_PLACE']}/superset.db"
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
RATELIMIT_ENABLED = False
_CACHE = {"CACHE_TYPE": "SimpleCache"}
CACHE_CONFIG = DATA_CACHE_CONFIG = _CACHE
FILTER_STATE_CACHE_CONFIG = EXPLORE_FORM_DATA_CACHE_CONFIG = _CACHE
