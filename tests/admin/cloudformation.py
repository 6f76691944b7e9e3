"""A CloudFormation that knows some stacks by their outputs, and nothing else."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

Outputs = Mapping[str, str]

DESCRIBED = """<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">
<DescribeStacksResult><Stacks><member><StackName>{name}</StackName><CreationTime>2026-09-26T12:00:00Z</CreationTime>
<StackStatus>CREATE_COMPLETE</StackStatus><Outputs>{outputs}</Outputs></member></Stacks></DescribeStacksResult>
</DescribeStacksResponse>"""

OUTPUT = "<member><OutputKey>{key}</OutputKey><OutputValue>{value}</OutputValue></member>"

MISSING = """<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error><Type>Sender</Type>
<Code>ValidationError</Code><Message>Stack with id {name} does not exist</Message></Error></ErrorResponse>"""


@contextmanager
def cloudformation(stacks: Mapping[str, Outputs]) -> Iterator[str]:
    """The address of a CloudFormation with these stacks."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            (name,) = asked["StackName"]
            if name in stacks:
                outputs = "".join(OUTPUT.format(key=key, value=value) for key, value in stacks[name].items())
                self.answer(HTTPStatus.OK, DESCRIBED.format(name=name, outputs=outputs))
            else:
                self.answer(HTTPStatus.BAD_REQUEST, MISSING.format(name=name))

        def answer(self, status: HTTPStatus, body: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
