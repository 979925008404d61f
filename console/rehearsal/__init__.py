"""The embedded fleet: real ssh servers, real processes and a real engine on loopback; no root, no Docker.

Real: ssh with pinned keys, the sampler's process and files, HTTP and its counters, container logs, event streams,
folders and links. Only simulated: memory and GPU figures, containers, terabytes. `scenario` says what a scenario file
may hold.
"""

from console.rehearsal.play import Rehearsal, RehearsalError
from console.rehearsal.scenario import Scenario, ScenarioError, list_scenarios, load_scenario

__all__ = ["Rehearsal", "RehearsalError", "Scenario", "ScenarioError", "list_scenarios", "load_scenario"]
