"""Works until it is killed. With a socket, it says by a token that it is there."""

import signal
import socket
import sys

if len(sys.argv) > 1:
    import procwright

    token = procwright.LivenessToken()
    with socket.socket(fileno=int(sys.argv[1])) as to_parent:
        token.invite().send(to_parent)
print("at work", flush=True)
while True:
    signal.pause()
