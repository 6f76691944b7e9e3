"""Why the deployment cannot be served from this machine; the messages are for the console."""


class LocalError(Exception):
    """The root of this package's errors."""


class TemplateError(LocalError):
    """The template says what this machine cannot do, or contradicts itself."""


class PortError(LocalError):
    """A port is taken, or is none."""


class FunctionNotLoadedError(LocalError):
    """A function's module or handler cannot be had."""


class FunctionTimeoutError(LocalError):
    """A function did not answer in time."""


class FunctionExitedError(LocalError):
    """A function ended its process, or would have done so in AWS."""


class DatabaseUnreachableError(LocalError):
    """No DynamoDB answers at the endpoint, or it refuses to."""


class QueuesUnreachableError(LocalError):
    """No SQS answers at the endpoint, or it refuses to."""
