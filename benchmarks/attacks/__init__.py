"""Can one log-in take the service from the others? Attacks on `dpsql serve`, and what others notice.

Run it with ``python -m benchmarks.attacks`` (or ``make attacks``); ``benchmarks/README.md`` says more.
"""
