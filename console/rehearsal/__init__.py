"""The embedded fleet: real ssh servers and real processes on this machine, with scripted faults."""
