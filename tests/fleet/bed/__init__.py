"""Real hosts for the tests: systemd, OpenSSH and Docker Engine in network namespaces of their own.

Standard library only: any Python 3.11 runs it, as `python3 -m bed` from tests/fleet, outside the project's environment.
"""
