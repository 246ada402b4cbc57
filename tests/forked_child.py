"""What the children of a fork server do in tests: as the argument after their folder says."""

import os
import signal
import sys


def prepare():
    os.environ["PREPARED_BY"] = str(os.getpid())


def main():
    _folder, deed, *words = sys.argv[1:]
    if deed == "echo":
        print(*words, os.environ["PREPARED_BY"], os.getppid(), sys.stdin.read())
    elif deed == "orphan":
        print(os.getppid(), flush=True)
        sys.stdin.read()
    elif deed == "fail":
        sys.stderr.write(words[0])
        raise SystemExit(int(words[1]))
    elif deed == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif deed == "kill server":
        os.kill(os.getppid(), signal.SIGKILL)
