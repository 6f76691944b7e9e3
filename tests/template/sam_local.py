"""Prints what `sam local start-api` would hand to the functions, without the Docker that it hands it to.

In: the template, what samconfig.toml says of `local start-api` as JSON with the parameters as an object, and on
standard input the requests: [{method, path, headers, body}].
Out: {"environments": {function: variables}, "routes": {"METHOD path": function}, "invocations": [...]}, where an
invocation is {function, event}, or null for a request that SAM answers itself. Runs in the SAM environment.
"""

# mypy: disable-error-code="import-not-found"

import json
import sys
from typing import Any

from samcli.commands.local.lib.local_lambda import LocalLambdaRunner
from samcli.lib.providers.api_provider import ApiProvider
from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
from samcli.local.apigw.local_apigw_service import LocalApigwService


class Recorder:
    """Stands where SAM's runner of containers would stand."""

    def __init__(self) -> None:
        self.invocation: dict[str, Any] | None = None

    def is_debugging(self) -> bool:
        return False

    def invoke(self, function: str, event: str, stdout: Any, **_: object) -> None:
        self.invocation = {"function": function, "event": json.loads(event)}
        stdout.write_str(json.dumps({"statusCode": 200}))


def environments(stacks: list[Any]) -> dict[str, dict[str, str]]:
    functions = SamFunctionProvider(stacks)
    runner = LocalLambdaRunner(None, functions, ".", ".", aws_region="us-east-1")
    return {function.name: runner.get_invoke_config(function).env_vars.resolve() for function in functions.get_all()}


def invocation(client: Any, recorder: Recorder, request: dict[str, Any]) -> dict[str, Any] | None:
    recorder.invocation = None
    client.open(
        request["path"],
        method=request["method"],
        headers=request["headers"],
        data=request["body"],
        base_url="http://localhost:3000",
    )
    return recorder.invocation


def main(template: str, options: str) -> None:
    given = json.loads(options)
    stacks, _ = SamLocalStackProvider.get_stacks(template, parameter_overrides=given["parameter_overrides"])
    api = ApiProvider(stacks, disable_authorizer=given["disable_authorizer"]).api
    recorder = Recorder()
    service = LocalApigwService(api, recorder, port=3000)
    service.create()
    client = service._app.test_client()  # noqa: SLF001 - SAM offers no other way in
    report = {
        "environments": environments(stacks),
        "routes": {f"{method} {route.path}": route.function_name for route in api.routes for method in route.methods},
        "invocations": [invocation(client, recorder, request) for request in json.load(sys.stdin)],
    }
    json.dump(report, sys.stdout)


main(*sys.argv[1:])
