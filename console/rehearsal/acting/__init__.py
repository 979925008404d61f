"""What makes the embedded fleet fit to be acted on: the console's own scripts, recognised byte for byte, and each one's
twin that works on the played hosts. Nothing that a client sends reaches a shell, an interpreter or a process."""
