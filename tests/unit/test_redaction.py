"""Secrets go by value in every spelling, and by shape; ordinary text stays."""

from __future__ import annotations

import base64
import html
import json
import random
import string
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_harbor.redaction import MASK, SHORTEST, Redactor

SECRET = 'pa"ss/wörd+&=?\\1'
PEM = "-----BEGIN {0}-----\nAAAA\nBBBB\n-----END {0}-----".format("OPENSSH PRIVATE" + " KEY")


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SPELLINGS = {
    "plain": SECRET,
    "json": json.dumps(SECRET),
    "json-utf8": json.dumps(SECRET, ensure_ascii=False),
    "json in json": json.dumps({"arguments": json.dumps({"key": SECRET})}),
    "repr": repr(SECRET),
    "html": html.escape(SECRET),
    "url": quote(SECRET),
    "url, no slash": quote(SECRET, safe=""),
    "form": quote_plus(SECRET),
    "hex": SECRET.encode().hex(),
    "base64": b64(SECRET),
    "base64, shifted by one": b64("x" + SECRET + "tail"),
    "base64, shifted by two": b64("xy" + SECRET),
    "base64, shifted by three": b64("xyz" + SECRET),
    "base64url": base64.urlsafe_b64encode(SECRET.encode()).decode(),
}


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_a_value_is_found_in_every_spelling(spelled: str) -> None:
    clean = Redactor([SECRET]).text(f"before {spelled} after")
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    assert MASK in clean
    left = clean.replace(MASK, "")
    assert SECRET not in left
    assert b64(SECRET)[4:-4] not in left
    assert "ss/w" not in left


@given(
    st.text(min_size=SHORTEST, max_size=40),
    st.text(max_size=20),
    st.text(max_size=20),
)
def test_no_value_survives(secret: str, before: str, after: str) -> None:
    redactor = Redactor([secret])
    if secret in MASK:
        return
    clean = redactor.text(before + secret + after)
    assert secret not in clean.replace(MASK, "\0")


@given(st.binary(max_size=200))
def test_bytes_that_are_no_text_come_through_unharmed(body: bytes) -> None:
    assert Redactor(["a value that is not there"]).bytes(body) == body


def test_bytes_lose_the_value_and_keep_the_rest() -> None:
    assert Redactor(["hunter22"]).bytes(b"\xff\x00hunter22\xfe") == b"\xff\x00[redacted]\xfe"


def test_the_longest_value_goes_first() -> None:
    assert Redactor(["secret", "secret-of-mine"]).text("secret-of-mine secret") == f"{MASK} {MASK}"


@pytest.mark.parametrize("short", ["", "main", "true!"])
def test_short_values_are_words_and_stay(short: str) -> None:
    assert Redactor([short]).text(f"is {short} main true! so") == f"is {short} main true! so"


def test_data_is_redacted_at_any_depth_and_keeps_its_shape() -> None:
    data = {"hunter22": [1, 2.5, None, True, {"deep": ("x hunter22 y",)}]}
    assert Redactor(["hunter22"]).data(data) == {
        MASK: [1, 2.5, None, True, {"deep": [f"x {MASK} y"]}]
    }


LETTERS = string.ascii_letters + string.digits
KEYS = {
    "openai": "sk-proj-" + LETTERS[:40],
    "anthropic": "sk-ant-api03-" + LETTERS[10:60] + "-9AA",
    "litellm": "sk-1234567890abcdef",
    "github": "ghp_" + LETTERS[:36],
    "github fine": "github_pat_" + LETTERS[:22] + "_" + LETTERS[:59],
    "gitlab": "glpat-" + LETTERS[30:50],
    "aws": "AKIA" + "ABCDEFGH12345678",
    "google": "AIza" + LETTERS[:35],
    "slack": "xoxb-123456789012-abcdefghij",
    "huggingface": "hf_" + LETTERS[:34],
    "jwt": ".".join([b64('{"alg":"HS256"}'), b64('{"sub":"1234567890123"}').rstrip("="), "c2ln"]),
    "pem": PEM,
    "pem, cut off": PEM[:50],
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_keys_nobody_named_are_known_by_their_shape(key: str) -> None:
    assert Redactor().text(f'{{"k": "{key}"}}').startswith(f'{{"k": "{MASK}')
    assert key not in Redactor().text(f"TOKEN={key}\n")


def test_headers_and_urls_keep_what_is_not_secret() -> None:
    redact = Redactor().text
    assert redact("Authorization: Bearer abc123def456ghi") == f"Authorization: Bearer {MASK}"
    assert redact("authorization: basic dXNlcjpwYXNz") == f"authorization: basic {MASK}"
    assert redact("https://me:hunter22@host/x") == f"https://me:{MASK}@host/x"


@pytest.mark.parametrize(
    "text",
    [
        "pip install sk-learn-pipeline-extras",
        "task-00000deepswe-something-long1",
        "the bearer of bad news, the bearer token",
        "http://main:8765/tool and http://user-server:8000/mcp",
        "AKIA is a prefix, ghp_ too, and sk- as well",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "git@github.com:org/repo.git",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert Redactor(["some-operator-value"]).text(text) == text


@given(st.text(alphabet="sk-ghp_eyJ.:/@[redacted] Bearer1", max_size=80))
def test_twice_is_once(text: str) -> None:
    redactor = Redactor(["ghp_eyJ.:/@", "redacted"])
    assert redactor.text(redactor.text(text)) == redactor.text(text)


def test_a_large_log_takes_no_time() -> None:
    noise = "".join(random.Random(1).choices(LETTERS + " \n", k=1_000_000)) * 8
    redactor = Redactor([f"operator-value-{n}" for n in range(20)])
    begin = time.process_time()
    redactor.text(noise)
    assert time.process_time() - begin < 8
