"""How long a chat takes from its start until it takes input, for `cargo xtask bench cli`.

Starts a program on a terminal of its own, types one letter once the prompt stands there, and stops the clock when the letter
is on the screen. Prints one JSON object. Arguments: name of the row, how often, the program and its arguments.
"""

import fcntl
import json
import os
import pty
import select
import signal
import statistics
import struct
import sys
import termios
import time

LIMIT = 20.0
# reedline asks where the cursor is before it shows its prompt; a terminal answers.
QUESTION, ANSWER = b"\x1b[6n", b"\x1b[1;1R"


def launch(command):
    """Milliseconds to the prompt, and to the letter on the screen."""
    began = time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen, answered, prompted = b"", 0, None
    try:
        while time.perf_counter() - began < LIMIT:
            if not select.select([terminal], [], [], 0.5)[0]:
                continue
            seen += os.read(terminal, 65536)
            while seen.count(QUESTION) > answered:
                os.write(terminal, ANSWER)
                answered += 1
            if prompted is None and b"> " in seen:
                prompted = time.perf_counter() - began
                seen = seen[seen.rindex(b"> ") + 2 :]
                answered = seen.count(QUESTION)
                os.write(terminal, b"Z")
            elif prompted is not None and b"Z" in seen:
                return prompted * 1e3, (time.perf_counter() - began) * 1e3
        raise SystemExit(f"no prompt within {LIMIT} s; seen: {seen[-300:]!r}")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


def main():
    name, times, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    os.environ["TERM"] = "xterm-256color"
    launch(command)
    taken = [launch(command)[1] for _ in range(times)]
    print(json.dumps({"name": name, "value": statistics.median(taken), "unit": "ms"}))


main()
