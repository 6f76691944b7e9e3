"""How a check ends that does not end well."""


class SmokeError(Exception):
    """There is no walk to be made; the message is for the console."""


class WrongError(Exception):
    """What came back is not what the protocol says. The message says what it is instead."""


class NotCheckedError(Exception):
    """A check that cannot be made here. The message says why."""
