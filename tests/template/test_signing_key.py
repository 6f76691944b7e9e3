"""The parameter SigningKey: no key, one that the stack makes, keys that exist, and both while keys are rotated."""

import re
from typing import Any

import pytest

from tests.template.deployments import deployed, of_type, statements

KEY = "arn:aws:kms:eu-central-1:123456789012:key/00000000-0000-4000-8000-000000000001"
OTHER_KEY = "arn:aws:kms:eu-central-1:123456789012:key/mrk-00000000000040008000000000000002"
OWN_KEY = "OwnSigningKey.Arn"

# The parameter's value, and the keys that it comes to, the one that signs first.
KEYS = {
    "": [],
    "create": [OWN_KEY],
    KEY: [KEY],
    f"{KEY},{OTHER_KEY}": [KEY, OTHER_KEY],
    f"create,{KEY}": [OWN_KEY, KEY],
    f"{KEY},create": [KEY, OWN_KEY],
    f"{KEY},create,{OTHER_KEY}": [KEY, OWN_KEY, OTHER_KEY],
}


@pytest.mark.parametrize(("value", "keys"), KEYS.items())
def test_the_card_function_is_told_of_the_keys_in_their_order(value: str, keys: list[str]) -> None:
    function = deployed(SigningKey=value)["CardFunction"]["Properties"]

    assert function["Environment"]["Variables"]["SIGNING_KEY"] == ",".join(keys)


@pytest.mark.parametrize(("value", "keys"), KEYS.items())
def test_the_card_function_may_use_these_keys_and_no_others(value: str, keys: list[str]) -> None:
    rights = [
        (statement["Action"], statement["Resource"])
        for statement in statements(deployed(SigningKey=value), "CardFunction")
        if "kms" in str(statement["Action"])
    ]

    assert rights == ([(["kms:GetPublicKey", "kms:Sign"], keys)] if keys else [])


@pytest.mark.parametrize("value", KEYS)
def test_no_other_function_may_use_a_key(value: str) -> None:
    resources = deployed(SigningKey=value)

    for function in set(of_type(resources, "AWS::Lambda::Function")) - {"CardFunction"}:
        assert "kms" not in str(statements(resources, function))


@pytest.mark.parametrize(("value", "keys"), KEYS.items())
def test_a_key_is_made_on_request_only(value: str, keys: list[str]) -> None:
    assert bool(of_type(deployed(SigningKey=value), "AWS::KMS::Key")) == (OWN_KEY in keys)


def test_the_key_that_is_made_can_do_nothing_but_sign() -> None:
    key = deployed(SigningKey="create")["OwnSigningKey"]["Properties"]

    assert (key["KeySpec"], key["KeyUsage"]) == ("ECC_NIST_P256", "SIGN_VERIFY")


def test_the_key_that_is_made_is_left_to_the_accounts_policies() -> None:
    key = deployed(SigningKey="create")["OwnSigningKey"]["Properties"]

    (statement,) = key["KeyPolicy"]["Statement"]
    assert statement["Principal"] == {"AWS": "arn:aws:iam::123456789012:root"}
    assert (statement["Effect"], statement["Action"], statement["Resource"]) == ("Allow", "kms:*", "*")


def test_a_key_that_has_signed_cards_survives_the_stack() -> None:
    key = deployed(SigningKey="create")["OwnSigningKey"]

    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


@pytest.mark.parametrize(
    ("value", "is_taken"),
    [
        *((value, True) for value in KEYS),
        ("create,create", False),
        (f"{KEY},", False),
        (f"{KEY}, create", False),
        (f"{KEY}create", False),
        ("alias/card", False),
        ("00000000-0000-4000-8000-000000000001", False),
    ],
)
def test_the_parameter_takes_only_what_can_work(template: dict[str, Any], value: str, *, is_taken: bool) -> None:
    pattern = template["Parameters"]["SigningKey"]["AllowedPattern"]

    assert bool(re.fullmatch(pattern, value)) == is_taken
