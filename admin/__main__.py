"""`python -m admin key`, and so on: what `make key` and its like start. The rest is in the environment."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from admin.errors import AdminError
from local.console import complain
from local.deployment import read_deployment
from local.errors import LocalError

TEMPLATE = Path(__file__).parent.parent / "template.yaml"

SUBJECTS = {
    "key": "make a key for CALLER, valid for DAYS days if given, and print it",
    "keys": "list the keys",
    "revoke": "revoke the key with the id KEY",
    "forget": "delete all that CALLER, or OWNER, has",
    "redrive": "put what webhooks and the worker did not take back into the queues, and pass on what the relay gave up",
}


def main() -> int:
    """Carry out the command, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m admin", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, subject in SUBJECTS.items():
        commands.add_parser(name, help=subject)
    name = parser.parse_args().command
    try:
        run(name)
    except (AdminError, LocalError) as error:
        complain(f"Error: {error}")
        return 1
    except KeyboardInterrupt:
        complain("Interrupted. Run it again to finish.")
        return 130
    return 0


def run(name: str) -> None:
    """Carry out the command of this name. Raises AdminError and LocalError."""
    # botocore knows the one name, Lambda's users the other.
    if "AWS_REGION" in os.environ:
        os.environ.setdefault("AWS_DEFAULT_REGION", os.environ["AWS_REGION"])
    # With all the queues that there may be, whatever `make run` was told.
    deployment = read_deployment(TEMPLATE, {**os.environ, "PUSH": "on"})
    sys.path.extend(str(path) for path in deployment.layers())
    from a2a_lambda import timestamps  # noqa: PLC0415 - the library is found from here on
    from admin.commands import command  # noqa: PLC0415 - as above
    from admin.database import open_database  # noqa: PLC0415 - as above
    from admin.queues import open_dead_letters  # noqa: PLC0415 - as above
    from admin.redriving import redrive  # noqa: PLC0415 - as above

    if name == "redrive":
        with open_dead_letters(deployment) as dead_letters:
            redrive(dead_letters, clock=timestamps.now)
        return
    carry_out = command(name, os.environ)
    with open_database(deployment) as database:
        carry_out(database)


if __name__ == "__main__":
    sys.exit(main())
