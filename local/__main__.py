"""`python -m local gateway` and `python -m local database`: what `make run` and `make database` start."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from local.console import complain
from local.errors import LocalError

if TYPE_CHECKING:
    from types import FrameType

TEMPLATE = Path(__file__).parent.parent / "template.yaml"


def main() -> NoReturn:
    """Start what the command line names, and end this process when it is told to."""
    parser = argparse.ArgumentParser(prog="python -m local", description=__doc__)
    parser.add_argument("--template", type=Path, default=TEMPLATE, help="another template than this project's")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("gateway", help="serve the functions of template.yaml")
    database = commands.add_parser("database", help="serve the embedded DynamoDB")
    database.add_argument("--socket", type=int, help="a listening socket; the end of the standard input ends it")
    arguments = parser.parse_args()
    status = 0
    try:
        if arguments.command == "gateway":
            run_gateway(arguments.template)
        elif arguments.socket is None:
            run_database(arguments.template)
        else:
            run_database_of_a_gateway(arguments.socket)
    except LocalError as error:
        complain(f"Error: {error}")
        status = 1
    except SystemExit:
        pass
    end(status)


def run_gateway(template: Path) -> None:
    """Serve the functions of the template until told to stop."""
    stop_on_signals()
    # From here on, imports take long enough for a Ctrl-C.
    from local.startup import start_gateway  # noqa: PLC0415

    with ExitStack() as at_exit:
        start_gateway(template, at_exit)
        wait()


def run_database(template: Path) -> None:
    """Serve the embedded DynamoDB until told to stop."""
    stop_on_signals()
    from local.startup import start_database  # noqa: PLC0415 - as above

    start_database(template)
    wait()


def run_database_of_a_gateway(descriptor: int) -> None:
    """Serve the embedded DynamoDB on an inherited socket until the gateway is no more."""
    from local.database import serve_database  # noqa: PLC0415 - as above

    serve_database(socket.socket(fileno=descriptor))
    sys.stdin.buffer.read()


def wait() -> NoReturn:
    """Wait until a signal ends the program.

    It looks up once a second: a signal that the system gives to another thread does not wake this one.
    """
    never = threading.Event()
    while True:
        never.wait(1)


def stop_on_signals() -> None:
    """Let Ctrl-C and SIGTERM end the program, wherever it is, as a success."""

    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(0)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)


def end(status: int) -> NoReturn:
    """End at once: threads still at work must not meet an interpreter that is being taken apart."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
