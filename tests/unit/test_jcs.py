"""Canonical JSON: the facts of RFC 8785."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_lambda.jcs import canonical
from tests.unit.factories import Json


def double(bits: str) -> float:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    return float(value)


@pytest.mark.parametrize(
    ("bits", "written"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_are_written_as_in_appendix_b(bits: str, written: str) -> None:
    assert canonical(double(bits)) == written.encode()


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_what_is_no_number_in_json_is_refused(bits: str) -> None:
    with pytest.raises(ValueError, match="no such number"):
        canonical(double(bits))


@pytest.mark.parametrize(
    ("number", "written"),
    [(1, "1"), (-1, "-1"), (100, "100"), (1.0, "1"), (0.5, "0.5"), (12.75, "12.75"), (2**53, "9007199254740992")],
)
def test_whole_and_short_numbers_have_no_needless_digits(number: float, written: str) -> None:
    assert canonical(number) == written.encode()


def test_a_whole_number_that_no_double_holds_is_the_nearest_double() -> None:
    assert canonical(2**53 + 1) == b"9007199254740992"
    assert canonical(10**21) == b"1e+21"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_read_again_as_the_same_double(value: float) -> None:
    assert float(canonical(value)) == value


def test_the_example_of_section_3_2_2_is_written_as_there() -> None:
    example = r"""{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"""

    assert canonical(json.loads(example)).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        r'"string":"€$\u000f\nA' + r"""'B\"\\\\\"/"}"""
    )


def test_names_are_sorted_by_utf_16_code_units() -> None:
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]

    assert list(json.loads(canonical(dict.fromkeys(names)))) == [
        "\r",
        "1",
        "\u0080",
        "\u00f6",
        "\u20ac",
        "\U0001f600",  # its code units begin with d83d, below fb33
        "\ufb33",
    ]


def test_members_of_inner_objects_are_sorted_too_and_lists_are_not() -> None:
    assert canonical([{"b": {"d": 1, "c": []}, "a": {}}, 3, 2]) == b'[{"a":{},"b":{"c":[],"d":1}},3,2]'


def test_text_is_utf_8_and_only_the_necessary_is_escaped() -> None:
    assert canonical("\x00\x1f\x7f\u2028é😀/") == '"\\u0000\\u001f\x7f\u2028é😀/"'.encode()


def test_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        canonical("\ud800")


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    )
)
def test_the_canonical_form_means_the_same_and_is_its_own(value: Json) -> None:
    form = canonical(value)

    assert json.loads(form) == value
    assert canonical(json.loads(form)) == form
