"""Damaged and invented messages: for the codec, and for a daemon that serves meanwhile.

Half of the messages are valid ones with bytes changed, frames cut, repeated or exchanged; half are random.
Prints one JSON document; exit status 1 when the daemon no longer answers or memory grew.

    python benchmarks/reliability/service_fuzz.py --messages 1000000 --to-daemon 50000
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import time

import zmq
from service_load import Daemon, request
from service_worker import DEVICE, answer_to

from ascend_gym.core.codec import CodecError, Kind, WireMessage, decode, encode
from ascend_gym.core.records import DaemonInfo, WorkerCount

GROWTH_LIMIT_MIB = 64.0
MAX_RANDOM_BYTES = 200
SEND_TIMEOUT_MS = 60_000


def templates() -> list[list[bytes]]:
    """Return one valid message of several kinds."""
    asked = request(0, use_cache=True)
    messages = [
        WireMessage(Kind.SUBMIT, "r1", payload=asked),
        WireMessage(Kind.RESULT, "r1", 3, answer_to(asked, 0.1)),
        WireMessage(Kind.DEVICE, payload=DaemonInfo(device=DEVICE, chips=("910B2",))),
        WireMessage(Kind.RESIZE, payload=WorkerCount(workers=2)),
        WireMessage(Kind.CANCEL, "r1"),
        WireMessage(Kind.BEAT, "r1", 1),
    ]
    return [encode(message) for message in messages]


def damaged(frames: list[bytes], randomness: random.Random) -> list[bytes]:
    """Return frames with something wrong, as a rule."""
    result = list(frames)
    for _ in range(randomness.randint(1, 3)):
        index = randomness.randrange(len(result))
        frame = bytearray(result[index])
        match randomness.randrange(5):
            case 0 if frame:
                frame[randomness.randrange(len(frame))] ^= randomness.randint(1, 255)
            case 1:
                del frame[randomness.randint(0, len(frame)) :]
            case 2:
                result.insert(index, bytes(frame))
            case 3:
                other = randomness.randrange(len(result))
                result[other], frame = bytes(frame), bytearray(result[other])
            case _:
                position = randomness.randint(0, len(frame))
                frame[position:position] = randomness.randbytes(randomness.randint(0, 9))
        result[index] = bytes(frame)
    return result


def invented(randomness: random.Random) -> list[bytes]:
    """Return random frames."""
    sizes = [randomness.randint(0, MAX_RANDOM_BYTES) for _ in range(randomness.randint(1, 6))]
    return [randomness.randbytes(size) for size in sizes]


def fuzz_codec(count: int, randomness: random.Random) -> dict[str, float]:
    """Decode ``count`` messages; whatever is raised ends the run."""
    valid = templates()
    before_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began_s = time.perf_counter()
    refused = 0
    for number in range(count):
        frames = invented(randomness) if number % 2 else damaged(randomness.choice(valid), randomness)
        refused += isinstance(decode(frames), CodecError)
    grown_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before_mib
    seconds = time.perf_counter() - began_s
    return {"messages": count, "refused": refused, "grown_mib": grown_mib, "seconds": seconds}


def obeyed(frames: list[bytes]) -> bool:
    """Whether a daemon that trusts everybody would rightly drain or change its workers."""
    message = decode(frames)
    return isinstance(message, WireMessage) and message.kind in (Kind.DRAIN, Kind.RESIZE)


def fuzz_daemon(count: int, randomness: random.Random) -> dict[str, float]:
    """Send ``count`` messages to a daemon, reading what it answers, and see whether it still serves.

    Raises:
        zmq.Again: it does not read any more.
        DaemonUnreachableError: it does not answer any more.
    """
    daemon = Daemon(workers=1, service_s=0.0)
    valid = [frames for frames in templates() if not obeyed(frames)]
    before_mib = daemon.resident_mib()
    answers = sent = 0
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SNDTIMEO, SEND_TIMEOUT_MS)
        socket.connect(daemon.evaluator.address)
        while sent < count:
            frames = invented(randomness) if sent % 2 else damaged(randomness.choice(valid), randomness)
            if obeyed(frames):
                continue
            socket.send_multipart(frames)
            sent += 1
            while socket.poll(0 if sent % 100 else 20):
                socket.recv_multipart()
                answers += 1
    served = daemon.evaluator.describe() == DEVICE
    grown_mib = daemon.resident_mib() - before_mib
    daemon.close()
    return {"messages": count, "answers": answers, "still_serves": served, "grown_mib": grown_mib}


def main() -> int:
    """Fuzz both, print, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--to-daemon", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    randomness = random.Random(arguments.seed)
    codec = fuzz_codec(arguments.messages, randomness)
    daemon = fuzz_daemon(arguments.to_daemon, randomness)
    print(json.dumps({"codec": codec, "daemon": daemon, "load": os.getloadavg()}, indent=2))
    good = bool(daemon["still_serves"]) and max(codec["grown_mib"], daemon["grown_mib"]) <= GROWTH_LIMIT_MIB
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
