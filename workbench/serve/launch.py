"""Makes the terminal at standard input the controlling one, then becomes the command in argv.

Run by path in a fresh session (setsid): with a controlling terminal the kernel itself ends the
screen by SIGHUP when the connection is gone. It imports nothing of ours, so it costs 10 ms.
"""

import fcntl
import os
import sys
import termios

NICENESS = 10
"""Screens draw when nobody measures at that moment."""

if __name__ == "__main__":
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.nice(NICENESS)
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 - argv comes from the server, not from a client
