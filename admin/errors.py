"""What an operator is told in one line."""


class AdminError(Exception):
    """A command cannot be carried out; the message is for the console."""
