"""CloudFormation's intrinsics."""

from pathlib import Path

import pytest

from local.errors import TemplateError
from local.template import Template, Value, load

DOCUMENT: dict[str, Value] = {
    "Parameters": {
        "Stage": {"Type": "String", "Default": "test"},
        "Origins": {"Type": "CommaDelimitedList", "Default": "a, b"},
        "Size": {"Type": "Number", "Default": 5},
    },
    "Mappings": {"Sizes": {"small": {"memory": 128}}},
    "Conditions": {
        "IsTest": {"Fn::Equals": [{"Ref": "Stage"}, "test"]},
        "IsLive": {"Fn::Not": [{"Condition": "IsTest"}]},
        "IsFive": {"Fn::Equals": [{"Ref": "Size"}, "5"]},
        "Both": {"Fn::And": [{"Condition": "IsTest"}, {"Condition": "IsFive"}]},
        "Either": {"Fn::Or": [{"Condition": "IsLive"}, {"Condition": "IsFive"}]},
    },
    "Resources": {
        "Table": {"Type": "AWS::DynamoDB::Table"},
        "Worker": {"Type": "AWS::Serverless::Function"},
        "Live": {"Type": "AWS::DynamoDB::Table", "Condition": "IsLive"},
    },
}


def resolve(node: Value, **given: str) -> Value:
    return Template(DOCUMENT, given).resolve(node)


def write(folder: Path, text: str) -> Path:
    path = folder / "template.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("node", "value"),
    [
        ({"Ref": "Stage"}, "test"),
        ({"Ref": "Origins"}, ["a", "b"]),
        ({"Ref": "Table"}, "Table"),
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Fn::GetAtt": ["Worker", "Arn"]}, "arn:aws:lambda:us-east-1:123456789012:function:Worker"),
        ({"Fn::GetAtt": ["Table", "StreamArn"]}, "Table.StreamArn"),
        ({"Fn::Sub": "${Stage}/${Worker.Arn}"}, "test/arn:aws:lambda:us-east-1:123456789012:function:Worker"),
        ({"Fn::Sub": ["${Stage}-${X}", {"X": {"Ref": "Size"}}]}, "test-5"),
        ({"Fn::Sub": "${!Literal}"}, "${Literal}"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Stage"}]]}, "a-test"),
        ({"Fn::Split": ["-", "a-b"]}, ["a", "b"]),
        ({"Fn::Select": [1, {"Ref": "Origins"}]}, "b"),
        ({"Fn::FindInMap": ["Sizes", "small", "memory"]}, 128),
        ({"Fn::If": ["IsTest", 1, 2]}, 1),
        ({"Fn::If": ["IsLive", 1, 2]}, 2),
        ({"Fn::If": ["Both", 1, 2]}, 1),
        ({"Fn::If": ["Either", 1, 2]}, 1),
        ([1, {"Ref": "AWS::NoValue"}, 2], [1, 2]),
        ({"a": 1, "b": {"Fn::If": ["IsLive", 2, {"Ref": "AWS::NoValue"}]}}, {"a": 1}),
    ],
)
def test_an_intrinsic_gives_its_value(node: Value, value: Value) -> None:
    assert resolve(node) == value


def test_what_is_given_decides_a_parameter() -> None:
    assert resolve({"Fn::If": ["IsTest", 1, 2]}, Stage="live") == 2


def test_what_is_given_decides_the_name_of_a_resource() -> None:
    assert resolve({"Ref": "Table"}, Table="other") == "other"


def test_a_list_is_given_with_commas() -> None:
    assert resolve({"Ref": "Origins"}, Origins="x,y , z") == ["x", "y", "z"]


def test_a_resource_is_there_only_under_its_condition() -> None:
    assert set(Template(DOCUMENT, {}).of_type("AWS::DynamoDB::Table")) == {"Table"}
    assert set(Template(DOCUMENT, {"Stage": "live"}).of_type("AWS::DynamoDB::Table")) == {"Table", "Live"}


@pytest.mark.parametrize(
    "node",
    [
        {"Ref": "Nobody"},
        {"Fn::ImportValue": "x"},
        {"Fn::If": ["Nobody", 1, 2]},
        {"Fn::FindInMap": ["Sizes", "large", "memory"]},
        {"Fn::Join": ["-", [{"a": 1}]]},
    ],
)
def test_what_cannot_be_resolved_is_an_error(node: Value) -> None:
    with pytest.raises(TemplateError):
        resolve(node)


def test_a_parameter_without_default_must_be_given() -> None:
    document: dict[str, Value] = {"Parameters": {"Key": {"Type": "String"}}}
    with pytest.raises(TemplateError, match="Key"):
        Template(document, {})
    assert Template(document, {"Key": "x"}).resolve({"Ref": "Key"}) == "x"


def test_short_intrinsics_are_read_as_long_ones(tmp_path: Path) -> None:
    path = write(tmp_path, "{a: !Ref X, b: !GetAtt X.Y.Z, c: !Sub ['${A}', {A: !Ref B}], d: !If [C, 1, !Condition D]}")
    assert load(path) == {
        "a": {"Ref": "X"},
        "b": {"Fn::GetAtt": ["X", "Y.Z"]},
        "c": {"Fn::Sub": ["${A}", {"A": {"Ref": "B"}}]},
        "d": {"Fn::If": ["C", 1, {"Condition": "D"}]},
    }


@pytest.mark.parametrize("text", ["a: [", "just text"])
def test_what_is_no_template_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(TemplateError):
        load(write(tmp_path, text))


def test_a_missing_template_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TemplateError):
        load(tmp_path / "template.yaml")
