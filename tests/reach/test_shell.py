"""The script that a host's shell reads off the channel while the channel's end is what stops the program."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest

from console.reach.shell import guarded
from console.readings.output import cut_noise

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("held", [20, 150, 300])
def test_a_script_that_comes_in_pieces_is_never_taken_for_the_channels_end(shell: str, held: int) -> None:
    """The last bytes come late, as they do where a large input fills the shell's buffer just so: the guard that waits
    for the end of the same channel must not read them and end the program."""
    argv = ["sh", "-c", "sleep 0.4; wc -c"]
    framed = guarded(argv, stdin="it's\n" * 20_000)
    start = [shell, "sh"] if shell == "busybox" else [shell]
    with subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None and process.stdout is not None
        script = framed.script.encode()
        process.stdin.write(script[:-held])
        process.stdin.flush()
        time.sleep(0.2)
        process.stdin.write(script[-held:])
        process.stdin.flush()  # and the channel stays open, as while a program runs
        found = cut_noise(process.stdout.read(), framed.nonce)
        process.stdin.close()
    assert (found.status, found.body.strip()) == (0, b"100000")
