"""Loading the agent that a deployment serves, by its name."""

import importlib

from a2a_lambda.agent import Agent
from a2a_lambda.settings import InvalidSettingError


def load_agent(name: str) -> Agent:
    """Return an instance of the agent that is named as `module:Class`.

    Raises:
        InvalidSettingError: there is no such module or class, it is not an Agent with a card, or it cannot be made
            without arguments.
    """
    module_name, _, class_name = name.partition(":")
    try:
        agent_class = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise InvalidSettingError(f"A2A_AGENT: {name} cannot be loaded: {error}") from error
    if not (isinstance(agent_class, type) and issubclass(agent_class, Agent) and hasattr(agent_class, "card")):
        raise InvalidSettingError(f"A2A_AGENT: {name} is not a subclass of a2a_lambda.agent.Agent with a card")
    try:
        return agent_class()
    except TypeError as error:
        raise InvalidSettingError(f"A2A_AGENT: {name} cannot be made: {error}") from error
