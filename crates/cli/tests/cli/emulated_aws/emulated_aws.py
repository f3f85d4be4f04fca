"""Runs the emulated AWS, without permissions, on the port that the argument names. Ended with its standard input."""

import os
import sys
import threading

os.environ.update(GATEWAY_PORT=sys.argv.pop(), BIND_HOST="127.0.0.1", MINISTACK_HOST="127.0.0.1")

from ministack import app


def end_with_input():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_input, daemon=True).start()
app.main()
