"""One rehearsal host as what is played there sees it: its files, processes, units and clock."""

from __future__ import annotations

import time
from dataclasses import dataclass

from console.rehearsal.files import HostFiles
from console.rehearsal.machine import SimulatedMachine
from console.rehearsal.processes import Processes, UnitFiles


@dataclass(frozen=True, slots=True)
class PlayedHost:
    """Everything of one host that is not a container."""

    name: str
    machine: SimulatedMachine
    processes: Processes
    units: UnitFiles

    @property
    def files(self) -> HostFiles:
        """Its file tree."""
        return self.machine.files

    @property
    def wall(self) -> float:
        """Unix seconds by its own clock."""
        return time.time() + self.files.ahead


def played_host(name: str, machine: SimulatedMachine) -> PlayedHost:
    """The host of a machine."""
    return PlayedHost(name, machine, Processes(machine.files, machine.booted), UnitFiles(machine.files))
