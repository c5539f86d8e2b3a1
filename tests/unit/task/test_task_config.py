"""task.toml beyond the published cases: what is refused, what is forgiven, and in which words."""

from __future__ import annotations

import pytest

from pytest_harbor.errors import TaskError
from pytest_harbor.task.config import ParsedConfig, TaskConfig, parse_task_toml


def parse(toml: str | bytes) -> ParsedConfig:
    return parse_task_toml(toml if isinstance(toml, bytes) else toml.encode(), "task.toml")


def config(toml: str) -> TaskConfig:
    parsed = parse(toml)
    assert parsed.warnings == ()
    return parsed.config


def refusal(toml: str | bytes) -> str:
    with pytest.raises(TaskError) as caught:
        parse(toml)
    return str(caught.value)


class TestBytes:
    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"[agent\n", "task.toml, line 1, column 7: Expected ']'"),
            (b"a = 1\n\nb = \n", "task.toml, line 3, column 5: Invalid value"),
            (b"a = 1\na = 2\n", "task.toml, line 2, column 6: Cannot overwrite a value"),
            (b'a = """never\nclosed', "task.toml, line 2, column 7 (end of file): "),
            (b"ok = 1\nname = '\xe9'\n", "task.toml, line 2: byte 0xe9 is not UTF-8; save"),
            (b"\xef\xbb\xbfa = 1\n'\xe9'", "task.toml, line 2: byte 0xe9 is not UTF-8; save"),
            ("a = 1\n".encode("utf-16"), "task.toml: the file is UTF-16 or binary; save it"),
            ("a = 1\n".encode("utf-16-le"), "task.toml: the file is UTF-16 or binary; save it"),
            (b"a = " + b"[" * 9000, "task.toml: cannot be parsed as TOML"),
            (b"a = " + b"9" * 9000, "task.toml: cannot be parsed as TOML"),
        ],
    )
    def test_a_broken_file_is_refused_where_it_breaks(self, data: bytes, words: str) -> None:
        assert refusal(data).startswith(words)

    def test_a_byte_order_mark_loads_with_a_warning(self) -> None:
        parsed = parse(b"\xef\xbb\xbf[agent]\ntimeout_sec = 5\n")
        assert parsed.config.agent.timeout_sec == 5
        assert "byte order mark" in parsed.warnings[0]

    def test_windows_line_ends_load(self) -> None:
        assert parse(b"[agent]\r\ntimeout_sec = 5\r\n").config.agent.timeout_sec == 5


class TestUnsetIsNotDefault:
    def test_an_empty_file_sets_nothing(self) -> None:
        empty = config("")
        assert empty.agent.timeout_sec is None
        assert empty.verifier.timeout_sec is None
        assert empty.environment.build_timeout_sec is None
        assert empty.environment.cpus is None
        assert empty.multi_step_reward_strategy is None

    def test_a_step_that_says_nothing_of_its_verifier_leaves_it_unset(self) -> None:
        step = config("[verifier]\ntimeout_sec = 60\n[[steps]]\nname = 'a'\n").steps[0]
        assert step.verifier.timeout_sec is None

    def test_models_cannot_be_changed(self) -> None:
        with pytest.raises(Exception, match="frozen"):
            config("").agent.timeout_sec = 5.0  # type: ignore[misc]


class TestNumbers:
    @pytest.mark.parametrize("table", ["[agent]", "[verifier]"])
    @pytest.mark.parametrize("value", ["0", "0.0", "-1", "nan", "inf", "-inf", "true", '"-3"'])
    def test_a_timeout_that_means_nothing_is_unset(self, table: str, value: str) -> None:
        parsed = parse(f"{table}\ntimeout_sec = {value}\n")
        assert parsed.config.agent.timeout_sec is None
        assert parsed.config.verifier.timeout_sec is None
        [warning] = parsed.warnings
        assert warning.startswith(f"task.toml: {table} timeout_sec: is ")
        assert warning.endswith("counts as unset")

    @pytest.mark.parametrize(
        ("where", "of_step"),
        [
            ("[environment]\nbuild_timeout_sec = 0", "[environment] build_timeout_sec"),
            (
                "[environment.healthcheck]\ncommand = 'x'\ntimeout_sec = -1",
                "[environment.healthcheck] timeout_sec",
            ),
            (
                "[environment.healthcheck]\ncommand = 'x'\ninterval_sec = -1",
                "[environment.healthcheck] interval_sec",
            ),
            (
                "[[verifier.collect]]\ncommand = 'x'\ntimeout_sec = 0",
                "[[verifier.collect]] #1 timeout_sec",
            ),
            (
                "[[steps]]\nname = 'a'\n[steps.agent]\ntimeout_sec = 0",
                "[[steps]] a [agent] timeout_sec",
            ),
            ("[environment]\ncpus = 0", "[environment] cpus"),
            ("[environment]\nmemory_mb = -5", "[environment] memory_mb"),
            ("[environment]\ngpus = true", "[environment] gpus"),
        ],
    )
    def test_everywhere(self, where: str, of_step: str) -> None:
        [warning] = parse(where + "\n").warnings
        assert warning.startswith(f"task.toml: {of_step}: is ")

    def test_pauses_and_counts_may_be_zero(self) -> None:
        found = config(
            "[environment]\ngpus = 0\nstorage_mb = 0\n"
            "[environment.healthcheck]\ncommand = 'x'\ninterval_sec = 0\nstart_period_sec = 0\n"
        )
        assert found.environment.healthcheck is not None
        assert found.environment.healthcheck.interval_sec == 0

    def test_healthcheck_times_stay_fractions(self) -> None:
        health = config("[environment.healthcheck]\ncommand='x'\ntimeout_sec=0.5\n").environment
        assert health.healthcheck is not None
        assert health.healthcheck.timeout_sec == 0.5

    def test_numeric_strings_count(self) -> None:
        found = config(
            '[agent]\ntimeout_sec = "30"\n[environment]\ncpus = "2"\nmemory_mb = "512"\n'
            '[[steps]]\nname = "a"\nmin_reward = "0.5"\n'
        )
        assert found.agent.timeout_sec == 30.0
        assert found.environment.cpus == 2
        assert found.environment.memory_mb == 512
        assert found.steps[0].min_reward == 0.5

    def test_a_gate_by_key(self) -> None:
        step = config("[[steps]]\nname = 'a'\nmin_reward = {tests = 1, style = 0.5}\n").steps[0]
        assert step.min_reward == {"tests": 1.0, "style": 0.5}

    def test_a_huge_number_is_refused_in_words(self) -> None:
        digits = "9" * 400
        assert "[agent] timeout_sec: must be a number" in refusal(
            f"[agent]\ntimeout_sec = {digits}\n"
        )
        assert "[environment] cpus: must be a number" in refusal(
            f"[environment]\ncpus = {digits}\n"
        )


class TestSizes:
    @pytest.mark.parametrize(
        ("lines", "mb"),
        [
            ('memory = "1.5G"', 1536),
            ('memory = "512M"', 512),
            ('memory = "2048K"', 2),
            ('memory = "2G"\nmemory_mb = "2048"', 2048),
        ],
    )
    def test_legacy_size(self, lines: str, mb: int) -> None:
        assert config(f"[environment]\n{lines}\n").environment.memory_mb == mb

    @pytest.mark.parametrize(
        ("lines", "mb", "words"),
        [
            ("memory = 2048", 2048, "is read as 2048 MB; write memory_mb = 2048"),
            ("memory = 2048\nmemory_mb = 512", 512, "is ignored beside memory_mb = 512"),
            ("memory = true", None, "cannot be read as a size and is ignored"),
            ("memory = -1", None, "cannot be read as a size and is ignored"),
        ],
    )
    def test_legacy_size_that_harbor_loses(self, lines: str, mb: int | None, words: str) -> None:
        parsed = parse(f"[environment]\n{lines}\n")
        assert parsed.config.environment.memory_mb == mb
        [warning] = parsed.warnings
        assert warning.startswith(f"task.toml: [environment] memory: {words}")

    def test_storage_likewise(self) -> None:
        parsed = parse("[environment]\nstorage = 10240\n")
        assert parsed.config.environment.storage_mb == 10240
        assert len(parsed.warnings) == 1

    def test_a_size_without_a_unit_in_a_string(self) -> None:
        assert "write memory_mb" in refusal('[environment]\nmemory = "2048"\n')


class TestNetwork:
    def test_allow_internet_gives_way_to_the_new_key(self) -> None:
        parsed = parse("[environment]\nallow_internet = false\nnetwork_mode = 'public'\n")
        assert parsed.config.environment.network_mode == "public"
        [warning] = parsed.warnings
        assert "allow_internet: is false, but network_mode is 'public', which" in warning

    @pytest.mark.parametrize("mode", ["'public'", "'allowlist'\nallowed_hosts = ['a.com']"])
    def test_allow_internet_may_stand_beside_what_says_the_same(self, mode: str) -> None:
        config(f"[environment]\nallow_internet = true\nnetwork_mode = {mode}\n")

    def test_allow_internet_is_a_switch(self) -> None:
        assert "[environment]: allow_internet must be true or false" in refusal(
            "[environment]\nallow_internet = 'perhaps'\n"
        )

    def test_hosts_are_settled(self) -> None:
        found = config(
            "[agent]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['Example.ORG.', '*.a.com', "
            "'10.0.0.0/8', '::1', 'localhost']\n"
        )
        assert found.agent.allowed_hosts == (
            "example.org",
            "*.a.com",
            "10.0.0.0/8",
            "::1",
            "localhost",
        )

    def test_an_empty_list_denies_all(self) -> None:
        found = config("[agent]\nnetwork_mode = 'allowlist'\nallowed_hosts = []\n")
        assert found.agent.allowed_hosts == ()

    @pytest.mark.parametrize(
        "host", ["a.com:80", "a.com/x", "*.10.0.0.1", "*", "", "-a.com", "a..b", "1.2.3", "*.*.a"]
    )
    def test_other_hosts_are_refused(self, host: str) -> None:
        assert "[verifier] allowed_hosts" in refusal(
            f"[verifier]\nnetwork_mode = 'allowlist'\nallowed_hosts = [{host!r}]\n"
        )


class TestMcp:
    def server(self, lines: str) -> str:
        return f"[[environment.mcp_servers]]\nname = 'u'\n{lines}\n"

    @pytest.mark.parametrize(
        "headers",
        [
            "{Authorization = 'Bearer ${TOKEN}'}",
            "{X-Api-Key = '${KEY}'}",
            "{Accept-Language = 'en'}",
            "{X-Team = 'team-${TEAM:-none}'}",
        ],
    )
    def test_headers(self, headers: str) -> None:
        config(self.server(f"transport = 'http'\nurl = 'http://u/mcp'\nheaders = {headers}"))

    @pytest.mark.parametrize(
        ("lines", "words"),
        [
            ("transport='http'\nurl='http://u'\nheaders={X-Api-Key='abc'}", "secret in clear"),
            ("transport='http'\nurl='http://u'\nheaders={Cookie='${A:-abc}'}", "secret in clear"),
            ("transport='http'\nurl='http://u'\nheaders={'a b'='c'}", "not an HTTP header name"),
            ('transport="http"\nurl="http://u"\nheaders={a="b\\nc"}', "line break"),
            ("transport='stdio'\ncommand='x'\nheaders={a='b'}", "'stdio' cannot send"),
            ("transport='websocket'\nurl='ws://u'", "transport: must be 'stdio', 'sse' or"),
            ("", "has transport 'sse' but no url; add its address"),
        ],
    )
    def test_refused(self, lines: str, words: str) -> None:
        message = refusal(self.server(lines))
        assert message.startswith("task.toml: [[environment.mcp_servers]] u")
        assert words in message

    def test_a_secret_is_not_repeated_in_the_message(self) -> None:
        lines = "transport='http'\nurl='http://u'\nheaders={X-Api-Key='s3cr3t'}"
        assert "s3cr3t" not in refusal(self.server(lines))

    def test_a_command_without_transport_is_told_what_lacks(self) -> None:
        assert "transport" in refusal(self.server("command = 'x'"))

    def test_env_is_lost_in_harbor(self) -> None:
        parsed = parse(self.server("transport='stdio'\ncommand='x'\nenv={A='1'}"))
        assert "[environment.mcp_servers]] u" in parsed.warnings[0]
        assert "env" in parsed.warnings[0]

    def test_a_template_in_a_url_stays_one(self) -> None:
        parsed = parse(self.server("transport='sse'\nurl='http://${HOST}/mcp'"))
        assert "not resolved in a URL" in parsed.warnings[0]


class TestArtifacts:
    def test_both_forms(self) -> None:
        found = config("artifacts = ['/a', {source = '/b', destination = ''}]\n")
        assert [artifact.source for artifact in found.artifacts] == ["/a", "/b"]
        assert found.artifacts[1].destination is None

    @pytest.mark.parametrize(
        ("entry", "words"),
        [
            ("'/a/../b'", "task.toml: artifacts #1 source: '/a/../b' holds '..'"),
            ("''", "source: is empty"),
            ("{source='/a', destination='../b'}", "destination: '../b' must be relative"),
            ("{source='/a', destination='b\\c'}", "must be relative"),
            ("{source='/a', destination='./manifest.json'}", "runner's own file"),
            ("{source='a', service='db'}", "must be an absolute path"),
            ("{source='/a', service='-db'}", "service: '-db' is not a Compose service"),
            ("{destination='b'}", "source: is missing; add it"),
            ("7", "task.toml: artifacts #1: must be a table, is 7"),
        ],
    )
    def test_refused(self, entry: str, words: str) -> None:
        assert words in refusal(f"artifacts = [{entry}]\n")


class TestMessages:
    @pytest.mark.parametrize(
        ("toml", "message"),
        [
            ("agent = 5", "task.toml: agent: must be a table, is 5"),
            ("environment = 5", "task.toml: environment: must be a table, is 5"),
            ("[[agent]]", "task.toml: agent: must be a table, is an array"),
            ("schema_version = 1", 'schema_version: must be a string in quotes, "...", is 1'),
            ("version = 1", 'task.toml: version must be a string: version = "1"'),
            ("[agent]\ntimeout_sec = 'soon'", "[agent] timeout_sec: must be a number, is 'soon'"),
            ("[environment]\nmemory_mb = 1.5", "[environment] memory_mb: must be a whole number"),
            ("[agent]\nuser = 1.5", "[agent] user: must be a user name in quotes or a user id"),
            ("[agent]\nuser = true", "[agent] user: must be a user name in quotes or a user id"),
            ("[task]\nname='a/b'\nversion=''", "version: must be a string that is not empty"),
            ("[steps]\nname = 'a'", "task.toml: [steps]: must be an array of tables; write [[st"),
            ("[[steps]]\nmin_reward = 1", "task.toml: [[steps]] #1 name: is missing; add it"),
            (
                "[metadata]\n[verifier]\nenv = 'A=1'",
                "[verifier] env: must be a table, is something e",
            ),
            ("multi_step_reward_strategy = 'max'", "must be 'mean' or 'final', is 'max'"),
            (
                "[[steps]]\nname = 'a'\n[[steps.verifier.collect]]\nservice = 'x'",
                "task.toml: [[steps]] a [[verifier.collect]] #1 command: is missing; add it",
            ),
            ("[environment]\ncpus = 'many'", "[environment] cpus: must be a number, is 'many'"),
            ("[environment]\ncpus = inf", "[environment] cpus: must be a finite number"),
            ("[[steps]]\nname='a'\nmin_reward=nan", "min_reward: must be a number, is nan"),
        ],
    )
    def test_one_line_names_file_place_and_remedy(self, toml: str, message: str) -> None:
        assert message in refusal(toml + "\n")

    def test_all_problems_at_once_a_line_each(self) -> None:
        lines = refusal("[environment]\ncpus = 'x'\nos = 'mac'\n[agent]\nuser = 1.5\n").splitlines()
        assert len(lines) == 3
        assert all(line.startswith("task.toml: [") for line in lines)

    def test_no_word_of_pydantic(self) -> None:
        message = refusal("[environment]\ncpus = 'x'\nmcp_servers = 5\nenv = {A = 1}\n")
        assert "pydantic" not in message
        assert "Input should" not in message

    def test_a_value_that_may_be_a_secret_is_not_shown(self) -> None:
        message = refusal(
            "[verifier.env]\nPIN = 4711\n"
            "[[environment.mcp_servers]]\nname = 'u'\nurl = 'x'\nheaders = {a = 4711}\n"
        )
        assert message.count("must be a string in quotes") == 2
        assert "4711" not in message

    def test_a_long_value_is_shortened(self) -> None:
        assert len(refusal(f"[environment]\nos = '{'x' * 5000}'\n")) < 200


class TestUnknownKeys:
    @pytest.mark.parametrize(
        ("toml", "warning"),
        [
            ("[agent]\ntimeout = 5", "[agent] timeout: unknown key, ignored; did you mean 'time"),
            ("[agent]\ntimeout-sec = 5", "[agent] timeout-sec: unknown key, ignored; did you mea"),
            ("[agent]\nTimeout_Sec = 5", "[agent] Timeout_Sec: unknown key, ignored; did you mea"),
            ("timeout_sec = 5", "timeout_sec: unknown key here, ignored; 'timeout_sec' belongs i"),
            (
                "[environment]\nartifacts = ['/a']",
                "[environment] artifacts: unknown key here, ignored; 'artifacts' belongs at the",
            ),
            ("[[step]]\nname = 'a'", "step: unknown key, ignored; did you mean 'steps'?"),
            ("[[steps]]\nname='a'\nworkdir='/x'", "[[steps]] a workdir: unknown key here, ign"),
            ("[[steps]]\nname='a'\nsolution={}", "[[steps]] a [solution]: unknown key here, ig"),
            ("[metadata]\n[metadata.deep]\nany = 1", None),
            ("[verifier.env]\nANY = '1'", None),
            (
                "[verifier.environment]\nmemory_gb = 2",
                "[verifier.environment] memory_gb: unknown key, ignored; did you mean 'memory_mb'",
            ),
        ],
    )
    def test_warning(self, toml: str, warning: str | None) -> None:
        warnings = parse(toml + "\n").warnings
        assert len(warnings) == (warning is not None)
        assert all(line.startswith(f"task.toml: {warning}") for line in warnings)
