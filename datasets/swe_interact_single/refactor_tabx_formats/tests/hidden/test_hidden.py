"""What the user asked for: the structure, and that nothing else changed."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

APP = Path(os.environ["APP"])
FORMATS = {"csv": ".csv", "html": ".html", "markdown": ".md"}

TABLES = {
    "plain": {"columns": ["name", "n"], "rows": [["pear", 1], ["fig", 2.5]]},
    "empty": {"columns": ["a", "b"], "rows": []},
    "values": {
        "columns": ["flag", "none", "mixed", "deep"],
        "rows": [[True, None, 1, [1, 2]], [False, None, "1", {}]],
    },
    "marks": {
        "columns": ["a|b", 'q"<&>', "c,d"],
        "rows": [['x"y', "<b>&amp;</b>", "l1\nl2"], ["back\\slash|pipe", "a,b", "r1\r\nr2"]],
    },
    "numbers": {"columns": ["n", "m"], "rows": [[1, 2], [3, None], [-4, 5]]},
    "long": {"columns": ["i"], "rows": [[i] for i in range(8)]},
}


def node(script, *words, cwd=APP, stdin=""):
    """Run a piece of JavaScript or a file; return (status, stdout, stderr)."""
    start = ["node", script] if Path(script).is_absolute() else ["node", "-e", script, "--"]
    environment = {"PATH": os.environ["PATH"], "NODE_OPTIONS": ""}
    done = subprocess.run(
        [*start, *words], cwd=cwd, env=environment, input=stdin.encode(), capture_output=True,
        timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def evaluate(expression, prelude=""):
    """Return the JSON value of an expression."""
    status, out, err = node(
        f"{prelude}; process.stdout.write(JSON.stringify((() => {{ return {expression} }})()))"
    )
    if status:
        raise AssertionError(err[-2000:])
    return json.loads(out)


def thrown(calls, prelude=""):
    """Return for each call [name, message] of what it throws, or None."""
    tries = [f"() => {{ {call} }}" for call in calls]
    return evaluate(
        f"[{', '.join(tries)}].map((call) => {{"
        " try { call(); return null } catch (e) { return [e.name, e.message] } })",
        prelude,
    )


def source(name):
    """Return a source file without its comments."""
    text = (APP / name).read_text()
    return re.sub(r"/\*.*?\*/|(?<![:'\"`\\])//[^\n]*", "", text, flags=re.DOTALL)


def sources():
    """Return all source files under src and bin."""
    return [p.relative_to(APP).as_posix() for d in ("src", "bin") for p in (APP / d).rglob("*.js")]


FORMATS_JS = "const formats = require('./src/formats')"


class SameOutput(unittest.TestCase):
    """To the byte."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        expected = Path(__file__).with_name("expected.json")
        cls.expected = json.loads(expected.read_text())

    def exported(self, name, call):
        """Return what a call makes of every table."""
        calls = [call.format(json.dumps(table), name=name) for table in TABLES.values()]
        return dict(zip(TABLES, evaluate(f"[{', '.join(calls)}]")))

    def test_csv(self):
        got = self.exported("csv", "require('.').exportTable({0}, '{name}')")
        self.assertEqual(got, self.expected["csv"])

    def test_markdown(self):
        got = self.exported("markdown", "require('.').exportTable({0}, '{name}')")
        self.assertEqual(got, self.expected["markdown"])

    def test_html(self):
        got = self.exported("html", "require('.').exportTable({0}, '{name}')")
        self.assertEqual(got, self.expected["html"])

    def test_preview(self):
        got = self.exported("", "require('.').preview({0})")
        self.assertEqual(got, self.expected["preview"])

    def test_old_exporters(self):
        functions = {"toCsv": "csv", "toMarkdown": "markdown", "toHtml": "html"}
        calls = [
            f"require('./src/exporters').{function}({json.dumps(table)})"
            for function in functions
            for table in TABLES.values()
        ]
        expected = [self.expected[name][key] for name in functions.values() for key in TABLES]
        self.assertEqual(evaluate(f"[{', '.join(calls)}]"), expected)

    def test_not_a_table(self):
        values = ("null", "{columns: ['a']}", "{columns: ['a'], rows: [[1, 2]]}")
        calls = [f"require('.').exportTable({value}, 'csv')" for value in values]
        self.assertEqual([got and got[0] for got in thrown(calls)], ["TypeError"] * 3)

    def test_table_is_checked_before_the_format(self):
        self.assertEqual(thrown(["require('.').exportTable(null, 'xyz')"])[0][0], "TypeError")


class CommandLine(unittest.TestCase):
    """bin/tabx.js."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "t.json").write_text(json.dumps(TABLES["plain"]))

    def tabx(self, *words, stdin=""):
        return node(str(APP / "bin/tabx.js"), *words, cwd=self.folder, stdin=stdin)

    def test_csv_is_the_default(self):
        self.assertEqual(self.tabx("t.json"), (0, "name,n\r\npear,1\r\nfig,2.5\r\n", ""))

    def test_stdin(self):
        self.assertEqual(self.tabx(stdin='{"columns": ["a"], "rows": []}'), (0, "a\r\n", ""))

    def test_out_decides(self):
        begins = {".md": "| name", ".html": "<table>", ".csv": "name,", ".x": "name,"}
        for ending, begin in begins.items():
            name = "out" + ending
            self.assertEqual(self.tabx("--out", name, "t.json"), (0, "", ""))
            self.assertTrue((self.folder / name).read_text().startswith(begin), name)

    def test_format_wins_over_out(self):
        self.tabx("--out", "x.md", "--format", "html", "t.json")
        self.assertTrue((self.folder / "x.md").read_text().startswith("<table>"))

    def test_help(self):
        status, out, _ = self.tabx("--help")
        self.assertEqual(status, 0)
        self.assertIn("formats: csv, html, markdown", out)

    def test_help_lists_what_is_registered(self):
        script = (
            "require('./src/formats')"
            ".register({name: 'aaa', extension: '.aaa', render: () => 'A!'});"
            "process.argv = ['node', 'tabx', '--help']; require('./bin/tabx.js')"
        )
        status, out, err = node(script)
        self.assertIn("formats: aaa, csv, html, markdown", out, err)

    def test_out_finds_what_is_registered(self):
        target = self.folder / "x.aaa"
        script = (
            "require('./src/formats')"
            ".register({name: 'new', extension: '.aaa', render: () => 'A!'});"
            f"process.argv = ['node', 'tabx', '--out', {json.dumps(str(target))},"
            f"{json.dumps(str(self.folder / 't.json'))}]; require('./bin/tabx.js')"
        )
        node(script)
        self.assertEqual(target.read_text(), "A!")

    def test_errors(self):
        self.assertEqual(self.tabx("--format"), (2, "", "tabx: --format needs a value\n"))
        self.assertEqual(self.tabx("--nope"), (2, "", "tabx: unknown option: --nope\n"))

    def test_unknown_format(self):
        expected = "tabx: unknown format: xyz (known: csv, html, markdown)\n"
        self.assertEqual(self.tabx("--format", "xyz", "t.json"), (2, "", expected))


class Registry(unittest.TestCase):
    """src/formats/."""

    def test_one_file_each(self):
        got = evaluate(
            f"{json.dumps(list(FORMATS))}.map((n) => require(`./src/formats/${{n}}.js`)).map((f) =>"
            "[f.name, f.extension, typeof f.render, Object.isFrozen(f), Object.keys(f).sort()])"
        )
        keys = ["extension", "name", "render"]
        expected = [[name, end, "function", True, keys] for name, end in FORMATS.items()]
        self.assertEqual(got, expected)

    def test_get_and_names(self):
        same = (
            "formats.names()"
            ".map((n) => [n, formats.get(n) === require(`./src/formats/${n}.js`)])"
        )
        expected = [["csv", True], ["html", True], ["markdown", True]]
        self.assertEqual(evaluate(same, FORMATS_JS), expected)

    def test_new_format(self):
        prelude = (
            FORMATS_JS + "; formats.register("
            "{name: 'bb', extension: '.b', render: (t) => 'b' + t.rows.length})"
        )
        call = "require('.').exportTable({columns: ['a'], rows: [[1], [2]]}, 'bb')"
        names = ["bb", "csv", "html", "markdown"]
        self.assertEqual(evaluate(f"[formats.names(), {call}]", prelude), [names, "b2"])

    def test_unknown(self):
        names = ("xyz", "constructor", "__proto__", "toString")
        expected = [
            ["Error", f"unknown format: {name} (known: csv, html, markdown)"] for name in names
        ]
        self.assertEqual(thrown([f"formats.get('{name}')" for name in names], FORMATS_JS), expected)

    def test_unknown_lists_what_is_registered(self):
        prelude = FORMATS_JS + "; formats.register({name: 'a', extension: '.a', render() {}})"
        call = "require('.').exportTable({columns: [], rows: []}, 'z')"
        expected = [["Error", "unknown format: z (known: a, csv, html, markdown)"]]
        self.assertEqual(thrown([call], prelude), expected)

    def test_name_taken(self):
        call = "formats.register({name: 'csv', extension: '.c', render() {}})"
        self.assertEqual(thrown([call], FORMATS_JS), [["Error", "format already registered: csv"]])

    def test_invalid(self):
        values = (
            "undefined", "null", "'csv'", "{}", "{name: '', extension: '.x', render() {}}",
            "{name: 1, extension: '.x', render() {}}", "{name: 'x', extension: 'x', render() {}}",
            "{name: 'x', render() {}}", "{name: 'x', extension: '.x', render: 'x'}",
        )  # fmt: skip
        got = thrown([f"formats.register({value})" for value in values], FORMATS_JS)
        self.assertEqual(got, [["TypeError", "invalid format"]] * len(values))


class Structure(unittest.TestCase):
    """Everything in one place."""

    def test_index_knows_no_format(self):
        text = source("src/index.js")
        for word in ("switch", "csv", "markdown", "html"):
            self.assertNotIn(word, text.lower())

    def test_command_line_knows_csv_only(self):
        text = source("bin/tabx.js").lower()
        for word in ("markdown", "html", ".md"):
            self.assertNotIn(word, text)

    def test_cell_text(self):
        got = evaluate("[null, undefined, true, false, 0, 'x'].map(c => cellText(c))",
                       "const { cellText } = require('./src/cell')")  # fmt: skip
        self.assertEqual(got, ["", "", "yes", "no", "0", "x"])
        found = [n for n in sources() if re.search("['\"`]yes['\"`]", source(n))]
        self.assertEqual(found, ["src/cell.js"])
        for name in ("src/preview.js", *(f"src/formats/{name}.js" for name in FORMATS)):
            self.assertIn("cellText", source(name), name)

    def test_escape_html(self):
        got = evaluate("escapeHtml('<a href=\"x\">&</a>')",
                       "const { escapeHtml } = require('./src/escape')")  # fmt: skip
        self.assertEqual(got, "&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;")
        self.assertEqual([n for n in sources() if "&amp;" in source(n)], ["src/escape.js"])

    def test_number_columns(self):
        table = "{columns: [1, 2, 3], rows: [[1, 1, ''], [2, null, 2]]}"
        call = f"[0, 1, 2].map((at) => isNumberColumn({table}, at))"
        prelude = "const { isNumberColumn } = require('./src/table')"
        empty = "isNumberColumn({columns: [1], rows: []}, 0)"
        self.assertEqual(evaluate(f"[{call}, {empty}]", prelude), [[True, False, False], False])
        found = [n for n in sources() if re.search("['\"`]number['\"`]", source(n))]
        self.assertEqual(found, ["src/table.js"])

    def test_old_exporters_have_no_logic(self):
        text = (APP / "src/exporters.js").read_text()
        self.assertGreaterEqual(text.count("@deprecated"), 3)
        for word in ("replace(", "join(", ".map(", "push(", "for ("):
            self.assertNotIn(word, source("src/exporters.js"))

    def test_package_is_untouched(self):
        package = json.loads((APP / "package.json").read_text())
        self.assertEqual(
            sorted(package), ["bin", "description", "license", "main", "name", "scripts", "version"]
        )

    def test_readme(self):
        self.assertIn("## Adding a format", (APP / "README.md").read_text().splitlines())
