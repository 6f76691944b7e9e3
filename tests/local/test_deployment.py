"""What the template deploys."""

from pathlib import Path

import pytest

from local.authorizers import IamAuthorizer, JwtAuthorizer
from local.deployment import Cors, Deployment, read_deployment
from local.errors import TemplateError
from local.routes import Route

SMALL = Path(__file__).parent / "deployment" / "template.yaml"


def deployment(**environment: str) -> Deployment:
    return read_deployment(SMALL, environment)


def changed(folder: Path, old: str, new: str) -> Deployment:
    """The small deployment with a line of its template changed."""
    text = SMALL.read_text(encoding="utf-8")
    assert old in text
    path = folder / "template.yaml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return read_deployment(path, {})


def test_routes_lead_to_functions_however_the_integration_names_them() -> None:
    assert deployment().routes == (
        Route("POST /echo", "EchoFunction", 30),
        Route("ANY /echo/{proxy+}", "EchoFunction", 30),
        Route("GET /odd/{way}", "OddFunction", 0.2),
    )


def test_a_route_is_there_only_under_its_condition() -> None:
    assert "GET /secret" in {route.key for route in deployment(WITH_SECRETS="yes").routes}


def test_a_function_has_the_properties_of_globals_and_its_own() -> None:
    function = deployment().functions["EchoFunction"]
    assert function.source == SMALL.parent / "functions/echo"
    assert (function.handler, function.timeout, function.memory) == ("app.handler", 5, 256)
    assert function.variables == {"GREETING": "hello", "ITEMS_TABLE": "ItemsTable"}


def test_a_setting_is_given_by_the_name_that_the_functions_read() -> None:
    assert deployment(GREETING="hi").variables()["GREETING"] == "hi"


def test_a_setting_that_no_function_reads_is_given_by_its_name_in_capitals() -> None:
    assert deployment(WITH_SECRETS="yes").variables()["HAS_SECRETS"] == "true"


def test_a_table_goes_by_the_name_that_its_functions_are_given() -> None:
    assert [table.name for table in deployment().tables] == ["ItemsTable"]
    assert [table.name for table in deployment(ITEMS_TABLE="mine").tables] == ["mine"]


def test_a_table_is_created_as_the_template_says() -> None:
    (table,) = deployment().tables
    assert table.creation == {
        "TableName": "ItemsTable",
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    }
    assert table.expiry_attribute == "expires_at"


def test_cors_is_configured_as_the_template_says() -> None:
    assert deployment(ALLOWED_ORIGINS="*").cors == Cors(
        origins=("*",),
        methods=("GET", "POST"),
        headers=("Content-Type",),
        exposed=("ETag",),
        max_age="600",
        credentials=False,
    )


def test_functions_that_disagree_on_a_variable_are_refused(tmp_path: Path) -> None:
    disagreeing = changed(tmp_path, "HAS_SECRETS: !If", "GREETING: other\n          HAS_SECRETS: !If")
    with pytest.raises(TemplateError, match="GREETING"):
        disagreeing.variables()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Target: !Sub integrations/${EchoIntegration}", "Target: integrations/Nobody"),
        ("IntegrationUri: !GetAtt OddFunction.Arn", "IntegrationUri: https://elsewhere.example"),
    ],
)
def test_a_route_that_leads_nowhere_is_refused(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(TemplateError):
        changed(tmp_path, old, new)


def test_layers_are_found_as_sam_builds_them_or_as_laid_out_by_hand(tmp_path: Path) -> None:
    (tmp_path / "by-hand" / "python").mkdir(parents=True)
    layers = """
  Built: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: built}}
  ByHand: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: by-hand}}
"""
    path = tmp_path / "template.yaml"
    text = SMALL.read_text(encoding="utf-8") + layers
    path.write_text(text.replace("    Timeout: 5", "    Layers: [!Ref Built, !Ref ByHand, arn:elsewhere]"), "utf-8")
    assert read_deployment(path, {}).layers() == [tmp_path / "built", tmp_path / "by-hand/python"]


def test_this_projects_own_template_can_be_served() -> None:
    own = read_deployment(Path(__file__).parents[2] / "template.yaml", {"MAX_BODY_BYTES": "1000"})
    assert {"POST /a2a", "GET /.well-known/agent-card.json"} <= {route.key for route in own.routes}
    assert own.variables()["MAX_BODY_BYTES"] == "1000"


def test_a_route_is_as_open_as_its_authorization_type_says() -> None:
    authorizers = {route.key: route.authorizer for route in deployment(GUARD="AWS_IAM").routes}
    assert authorizers == {
        "POST /echo": IamAuthorizer(),
        "ANY /echo/{proxy+}": None,
        "GET /odd/{way}": None,
    }


def test_a_route_for_tokens_has_the_authorizer_that_it_names() -> None:
    (route, *_) = deployment(GUARD="JWT", ISSUER="https://issuer.example", AUDIENCE="a,b").routes
    assert route.authorizer == JwtAuthorizer("https://issuer.example", ("a", "b"), "authorization")


def test_parameters_that_break_a_rule_are_refused_in_its_words() -> None:
    with pytest.raises(TemplateError, match="Guard=JWT needs Issuer"):
        deployment(GUARD="JWT")


@pytest.mark.parametrize(
    ("guard", "old", "new"),
    [
        ("CUSTOM", "", ""),
        ("NONE", "AuthorizationType: !Ref Guard", "AuthorizationType: JWT"),
        ("JWT", "AuthorizationType: !Ref Guard", "AuthorizationType: JWT\n      AuthorizationScopes: [some]"),
        ("JWT", "AuthorizerType: JWT", "AuthorizerType: REQUEST"),
        ("JWT", "[$request.header.Authorization]", "[$request.querystring.token]"),
    ],
)
def test_an_authorizer_that_cannot_be_imitated_is_refused(tmp_path: Path, guard: str, old: str, new: str) -> None:
    path = tmp_path / "template.yaml"
    path.write_text(SMALL.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(TemplateError, match="cannot be imitated"):
        read_deployment(path, {"GUARD": guard, "ISSUER": "x"})


AUTHORIZERS = {
    "none": None,
    "api-key": None,
    "iam": IamAuthorizer(),
    "jwt": JwtAuthorizer("https://issuer.example", ("one", "two"), "authorization"),
}


@pytest.mark.parametrize("auth", AUTHORIZERS)
def test_this_projects_own_routes_are_guarded_as_auth_says(auth: str) -> None:
    given = {"AUTH": auth, "JWT_ISSUER": "https://issuer.example", "JWT_AUDIENCE": "one,two"}
    routes = read_deployment(Path(__file__).parents[2] / "template.yaml", given).routes
    assert {route.authorizer for route in routes if route.function == "RpcFunction"} == {AUTHORIZERS[auth]}
    assert {route.authorizer for route in routes if route.function == "CardFunction"} == {None}
