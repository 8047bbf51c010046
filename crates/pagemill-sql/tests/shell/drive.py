"""Drives a program at a pseudo-terminal: `drive.py STEPS PROGRAM ARGUMENT…`.

STEPS is a file with a step a line: `send TEXT`, with Python's escapes; `expect PATTERN`, which has to be printed within ten
seconds; `soon PATTERN`, within one and a half; `wait SECONDS`; `end STATUS`, for the exit status. What was printed goes to standard output.
"""
import os
import pty
import re
import select
import sys
import time

steps, program = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    os.execv(program[0], program)
seen, place = "", 0


def more(seconds):
    """What the program prints within some time; nothing once it is gone."""
    if not select.select([terminal], [], [], seconds)[0]:
        return ""
    try:
        return os.read(terminal, 65536).decode("utf8", "replace")
    except OSError:
        return ""


def expect(pattern, seconds):
    global seen, place
    until = time.time() + seconds
    while True:
        found = re.search(pattern, seen[place:], re.S)
        if found:
            place += found.end()
            return
        if time.time() > until:
            sys.exit(f"no {pattern!r} in {seconds} s behind {seen[place:][-2000:]!r}")
        seen += more(0.05)


for step in open(steps, encoding="utf8"):
    verb, _, rest = step.rstrip("\n").partition(" ")
    if verb == "send":
        os.write(terminal, rest.encode().decode("unicode_escape").encode())
    elif verb == "wait":
        time.sleep(float(rest))
    elif verb in ("expect", "soon"):
        expect(rest, 10 if verb == "expect" else 1.5)
    elif verb == "end":
        while select.select([terminal], [], [], 5)[0] and (text := more(0)):
            seen += text
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) != int(rest):
            sys.exit(f"ended with {os.waitstatus_to_exitcode(status)}")
print(seen)
