"""What the user asked for, tried through the command line and one program."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

APP = Path(os.environ["APP"])


class Mold(unittest.TestCase):
    """Templates, data, and what comes out."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def lua(self, *words):
        done = subprocess.run(
            ["lua5.4", *words],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            timeout=30,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def mold(self, template, data=""):
        (self.folder / "t.txt").write_text(template)
        (self.folder / "data").write_text(data)
        return self.lua(APP / "mold", "t.txt", "data")

    def check(self, *cases):
        """Each case: template, data, what comes out."""
        for template, data, expected in cases:
            with self.subTest(template):
                self.assertEqual(self.mold(template, data), (0, expected, ""))

    def refused(self, *cases):
        """Each case: template, the message."""
        for template, message in cases:
            with self.subTest(template):
                self.assertEqual(self.mold(template, "x = 1\n"), (2, "", f"mold: t.txt:{message}\n"))


class StaysRight(Mold):
    """What works on the untouched repository."""

    def test_names(self):
        self.check(("Dear {{name}}, {{ name }}{{no}}!\n", "name = Ann B \n", "Dear Ann B, Ann B!\n"))

    def test_later_lines_win(self):
        self.check(("{{a}}", "a = 1\n# no\na=2\nb\n", "2"))

    def test_what_is_no_tag(self):
        text = "{{}} {{ }} {a} {{a b}} {{a-b}} }} {{ {{{"
        self.check((text, "a = 1\n", text))

    def test_windows_and_missing_newlines(self):
        self.check(("a\r\n{{x}}\r\nb", "x = 1\n", "a\r\n1\r\nb"))

    def test_errors(self):
        self.assertEqual(self.lua(APP / "mold", "t"), (2, "", "usage: mold TEMPLATE DATA\n"))
        expected = (2, "", "mold: no: No such file or directory\n")
        self.assertEqual(self.lua(APP / "mold", "no", "no"), expected)

    def test_program(self):
        script = 'print(require("mold").render("<{{a}}>", {a = "1"}))'
        self.assertEqual(self.program(script), "<1>\n")

    def program(self, script):
        status, out, err = self.lua("-e", f'package.path = "{APP}/?.lua"', "-e", script)
        self.assertEqual((status, err), (0, ""))
        return out


class Each(Mold):
    """Lists."""

    LIST = "item[] = pear\nitem[] = fig\nn = 3\n"

    def test_values(self):
        self.check(("{{#each item}}<{{.}}{{n}}>{{/each}}.", self.LIST, "<pear3><fig3>."))

    def test_none(self):
        self.check(("a{{#each no}}<{{.}}>{{/each}}b", self.LIST, "ab"))

    def test_index(self):
        self.check(("{{#each item}}{{@index}}:{{.}} {{/each}}", self.LIST, "1:pear 2:fig "))

    def test_blanks_in_tags(self):
        self.check(("{{ #each item }}{{ . }},{{ @index }};{{ /each }}", self.LIST, "pear,1;fig,2;"))

    def test_nested(self):
        template = "{{#each a}}{{.}}{{@index}}({{#each b}}{{.}}{{@index}}{{/each}}){{.}} {{/each}}"
        self.check((template, "a[] = x\na[] = y\nb[] = p\nb[] = q\n", "x1(p1q2)x y2(p1q2)y "))

    def test_deep(self):
        depth = 40
        template = "{{#if n}}<" * depth + "{{n}}" + ">{{/if}}" * depth
        self.check((template, self.LIST, "<" * depth + "3" + ">" * depth))


class If(Mold):
    """Conditions."""

    def test_values(self):
        template = "{{#if a}}yes{{/if}}."
        self.check(
            (template, "a = 1\n", "yes."),
            (template, "a = 0\n", "yes."),
            (template, "a = false\n", "."),
            (template, "a =\n", "."),
            (template, "b = 1\n", "."),
            (template, "a[] = x\n", "yes."),
        )

    def test_else(self):
        template = "{{#if a}}yes {{a}}{{else}}no {{b}}{{/if}}."
        self.check((template, "a = 1\nb = 2\n", "yes 1."), (template, "b = 2\n", "no 2."))

    def test_nested_else(self):
        template = "{{#if a}}{{#if b}}ab{{else}}a{{/if}}{{else}}{{#if b}}b{{else}}-{{/if}}{{/if}}"
        self.check(
            (template, "a = 1\nb = 1\n", "ab"),
            (template, "a = 1\n", "a"),
            (template, "b = 1\n", "b"),
            (template, "", "-"),
        )

    def test_in_each(self):
        template = "{{#each a}}{{#if b}}{{.}}{{else}}no{{/if}};{{/each}}"
        self.check((template, "a[] = x\na[] = y\nb = 1\n", "x;y;"))


class Filters(Mold):
    """Filters of values."""

    def test_case_and_trim(self):
        self.check(
            ("{{a|upper}} {{a|lower}} {{ a | upper }}", "a = Ann\n", "ANN ann ANN"),
            ("{{#each a}}{{.|upper}}{{/each}}", "a[] = x\na[] = y\n", "XY"),
            ("<{{no|upper}}>", "", "<>"),
        )

    def test_chain(self):
        self.check(("<{{a|trim|upper|lower}}>", "a = Ann\n", "<ann>"))

    def test_trim_of_a_default(self):
        self.check(("<{{a|default:  x y  |trim}}>", "", "<x y>"))

    def test_default(self):
        template = "{{a|default:no one}}."
        self.check((template, "", "no one."), (template, "a =\n", "no one."), (template, "a = 0\n", "0."))

    def test_default_is_filtered_in_order(self):
        self.check(
            ("{{a|default:x|upper}}", "", "X"),
            ("{{a|upper|default:x}}", "", "x"),
            ("{{a|default:10:30, ok?}}", "", "10:30, ok?"),
        )


class Text(Mold):
    """Comments, lines and braces."""

    def test_comments(self):
        self.check(("a{{! x | y #if }}b{{!}}c", "", "abc"))

    def test_lines_of_tags_go(self):
        template = "<\n{{#each a}}\n  {{.}}\n  {{/each}}  \n{{! note }}\n{{#if a}}\nyes\n{{else}}\nno\n{{/if}}\n>\n"
        self.check((template, "a[] = x\na[] = y\n", "<\n  x\n  y\nyes\n>\n"))

    def test_last_line(self):
        self.check(("{{#if a}}\nx\n{{/if}}", "a = 1\n", "x\n"))

    def test_other_lines_stay(self):
        self.check(
            ("{{#if a}}x{{/if}}\n{{a}}\n", "a =\n", "\n\n"),
            ("- {{#if a}}\nx\n{{/if}}\n", "a = 1\n", "- \nx\n"),
            ("{{#if a}}{{/if}}\nx", "a = 1\n", "\nx"),
        )

    def test_braces(self):
        self.check(
            (r"\{{a}} {{a}}", "a = 1\n", "{{a}} 1"),
            (r"\{{#if a}} \{{/if}}", "", "{{#if a}} {{/if}}"),
            (r"a \{{ b", "", "a {{ b"),
            ("\\a \\\\ {{#nothing}}", "", "\\a \\\\ {{#nothing}}"),
        )

    def test_values_are_data(self):
        self.check(
            ("{{a}}", "a = {{b}} %1 %% \\{{b}}\nb = 2\n", "{{b}} %1 %% \\{{b}}"),
            ("{{#each a}}{{.}}{{/each}}", "a[] = {{#if b}}\na[] = {{/each}}%0\n", "{{#if b}}{{/each}}%0"),
        )


class Mistakes(Mold):
    """Errors."""

    def test_filters(self):
        self.refused(
            ("\n{{x|shout}}", "2: unknown filter: shout"),
            ("{{#if no}}\n{{x|up}}{{/if}}", "2: unknown filter: up"),
        )

    def test_unexpected(self):
        self.refused(
            ("a\nb{{/if}}", "2: unexpected /if"),
            ("{{#if x}}\n{{/each}}{{/if}}", "2: unexpected /each"),
            ("{{else}}", "1: unexpected else"),
            ("{{#each x}}{{else}}{{/each}}", "1: unexpected else"),
            ("{{#if x}}{{else}}\n{{else}}{{/if}}", "2: unexpected else"),
        )

    def test_unclosed(self):
        self.refused(
            ("\n\n{{#each x}}\n", "3: unclosed each"),
            ("{{#each x}}\n{{#if x}}\n{{else}}\n", "2: unclosed if"),
            ("{{#if x}}\n{{#each x}}{{/each}}\n", "1: unclosed if"),
        )

    def test_program(self):
        script = (
            'print((pcall(require("mold").render, "{{/if}}", {})),'
            ' (require("mold").render("{{#each a}}{{.}}{{/each}}", {a = {"1", "2"}})))'
        )
        status, out, err = self.lua("-e", f'package.path = "{APP}/?.lua"', "-e", script)
        self.assertEqual((status, out.split(), err), (0, ["false", "12"], ""))


class Readme(unittest.TestCase):
    """The documentation."""

    def test_section(self):
        self.assertRegex((APP / "README.md").read_text(), "(?m)^## Blocks and filters$")
