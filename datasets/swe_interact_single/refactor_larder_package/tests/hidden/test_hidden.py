"""What the user asked for: a package, and that the command does what it did."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

APP = Path(os.environ["APP"])
HELP = """\
usage: larder COMMAND [WORD...]

  larder add NAME AMOUNT [DATE]
  larder due DATE
  larder help
  larder list
  larder take NAME AMOUNT
"""
STOCK = (
    "eggs\t1\tpcs\t\n"
    "flour\t1234567.4\tg\t2026-12-24\n"
    "milk\t2500\tml\t2026-10-01\n"
    "oil\t999.999\tml\t\n"
    "rice\t900\tg\t2026-10-01\n"
    "salt, fine\t1000\tg\t\n"
)
LIST = """\
eggs                       1 pc
flour                1234.567 kg  2026-12-24
milk                      2.5 l  2026-10-01
oil                  999.999 ml
rice                      900 g  2026-10-01
salt, fine                 1 kg
"""


class Case(unittest.TestCase):
    """A folder with a stock file; what is run is run there."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.stock = self.folder / "stock.txt"

    def execute(self, *words, stdin="", **more):
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **more}
        done = subprocess.run(
            ["tclsh", *words], cwd=self.folder, env=environment, input=stdin.encode(),
            capture_output=True, timeout=60,
        )  # fmt: skip
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def larder(self, *words):
        """Run the command; return (status, stdout, stderr)."""
        return self.execute(str(APP / "larder.tcl"), *words, LARDER_FILE=str(self.stock))

    def tcl(self, script, require="package require larder"):
        """Return what a script prints that has required the package."""
        path = self.folder / "script.tcl"
        path.write_text(f"lappend auto_path {{{APP / 'lib'}}}\n{require}\n{script}\n")
        status, out, err = self.execute(str(path))
        if status or err:
            raise AssertionError(err[-2000:])
        return out

    def code(self, call, prelude=""):
        """Return [first two words of the error code, message] of what a call raises."""
        out = self.tcl(
            f"{prelude}\nputs [catch {{{call}}} message options]\n"
            "puts [lrange [dict get $options -errorcode] 0 1]\nputs -nonewline $message"
        )
        status, code, message = out.split("\n", 2)
        self.assertEqual(status, "1", out)
        return [code, message]


class CommandLine(Case):
    """larder.tcl, as it was."""

    def test_add(self):
        self.assertEqual(self.larder("add", "rice", "1.5kg"), (0, "rice: 1.5 kg\n", ""))
        self.assertEqual(self.larder("add", "rice", "0.25kg"), (0, "rice: 1.75 kg\n", ""))
        self.assertEqual(self.larder("add", "eggs", "1"), (0, "eggs: 1 pc\n", ""))
        self.assertEqual(self.larder("add", "eggs", "5pcs"), (0, "eggs: 6 pcs\n", ""))
        self.assertEqual(self.larder("add", "oil", "0.5l"), (0, "oil: 500 ml\n", ""))
        expected = "eggs\t6\tpcs\t\noil\t500\tml\t\nrice\t1750\tg\t\n"
        self.assertEqual(self.stock.read_text(), expected)

    def test_large_and_small(self):
        self.assertEqual(self.larder("add", "a", "12345678g")[1], "a: 12345.678 kg\n")
        self.assertEqual(self.larder("add", "b", "1234567")[1], "b: 1234567 pcs\n")
        self.assertEqual(self.larder("add", "c", "0.125g")[1], "c: 0.125 g\n")
        self.assertEqual(self.larder("add", "d", "999.9999g")[1], "d: 1000 g\n")
        expected = "a\t12345678\tg\t\nb\t1234567\tpcs\t\nc\t0.125\tg\t\nd\t1000\tg\t\n"
        self.assertEqual(self.stock.read_text(), expected)

    def test_the_earlier_date_stays(self):
        for date in ("", "2026-12-01", "2026-11-01", "2026-12-24"):
            self.larder("add", "rice", "1g", *[date] * bool(date))
        self.assertEqual(self.stock.read_text(), "rice\t4\tg\t2026-11-01\n")

    def test_take(self):
        self.stock.write_text(STOCK)
        self.assertEqual(self.larder("take", "milk", "1.5l"), (0, "milk: 1 l left\n", ""))
        self.assertEqual(self.larder("take", "milk", "1ml"), (0, "milk: 999 ml left\n", ""))
        self.assertEqual(self.larder("take", "eggs", "1"), (0, "eggs: none left\n", ""))
        self.assertNotIn("eggs", self.stock.read_text())

    def test_refusals(self):
        self.stock.write_text(STOCK)
        for words, message in {
            ("take", "bread", "1"): "no such item: bread",
            ("take", "rice", "1l"): "rice is kept in g, not ml",
            ("add", "rice", "1"): "rice is kept in g, not pcs",
            ("take", "salt, fine", "1.1kg"): "only 1 kg of salt, fine",
            ("take", "eggs", "2"): "only 1 pc of eggs",
        }.items():
            self.assertEqual(self.larder(*words), (1, "", f"larder: {message}\n"))
        self.assertEqual(self.stock.read_text(), STOCK)

    def test_nonsense(self):
        for words, message in {
            ("add", "rice"): "usage: larder add NAME AMOUNT [DATE]",
            ("take", "rice"): "usage: larder take NAME AMOUNT",
            ("list", "rice"): "usage: larder list",
            ("due",): "usage: larder due DATE",
            ("add", " ", "1"): "bad name:  ",
            ("add", "rice", "0g"): "bad amount: 0g",
            ("add", "rice", "1 kg"): "bad amount: 1 kg",
            ("take", "rice", "-1"): "bad amount: -1",
            ("due", "2026-02-30"): "bad date: 2026-02-30",
            ("add", "rice", "1", "tomorrow"): "bad date: tomorrow",
            ("eat", "rice"): "unknown command: eat",
        }.items():
            self.assertEqual(self.larder(*words), (2, "", f"larder: {message}\n"))
        self.assertFalse(self.stock.exists())

    def test_list(self):
        self.assertEqual(self.larder("list"), (0, "", ""))
        self.stock.write_text("# what there is\n\n" + STOCK)
        self.assertEqual(self.larder("list"), (0, LIST, ""))

    def test_due(self):
        self.stock.write_text(STOCK)
        self.assertEqual(self.larder("due", "2026-09-30"), (0, "nothing\n", ""))
        expected = "2026-10-01  milk (2.5 l)\n2026-10-01  rice (900 g)\n"
        self.assertEqual(self.larder("due", "2026-10-01"), (0, expected, ""))
        expected += "2026-12-24  flour (1234.567 kg)\n"
        self.assertEqual(self.larder("due", "2027-01-01"), (0, expected, ""))

    def test_bad_line(self):
        self.stock.write_text("eggs\t1\tpcs\t\neggs and more\n")
        expected = (1, "", f"larder: {self.stock}:2: bad line\n")
        self.assertEqual(self.larder("list"), expected)

    def test_help(self):
        for words in ((), ("help",)):
            self.assertEqual(self.larder(*words), (0, HELP, ""))

    def test_default_file(self):
        (self.folder / "larder.txt").write_text(STOCK)
        self.assertEqual(self.execute(str(APP / "larder.tcl"), "list"), (0, LIST, ""))

    def test_names_in_any_script(self):
        self.larder("add", "Müsli", "1kg")
        self.assertEqual(self.stock.read_bytes(), "Müsli\t1000\tg\t\n".encode())

    def test_without_the_package_there_is_no_command(self):
        copy = self.folder / "larder.tcl"
        copy.write_text((APP / "larder.tcl").read_text())
        status, _, err = self.execute(str(copy), "help")
        self.assertNotEqual(status, 0)
        self.assertIn("larder", err)


class Package(Case):
    """What another program gets."""

    def test_version(self):
        self.assertEqual(self.tcl("puts [package require larder]"), "1.0\n")

    def test_leaves_nothing(self):
        require = """
            auto_load parray; catch {package require none-such}; catch {clock format 0}
            set name {}; set new {}; set before {}
            set before [concat [info commands] [info globals]]
            package require larder
            foreach name [concat [info commands] [info globals]] {
                if {$name ni $before} {lappend new $name}
            }
        """
        self.assertEqual(self.tcl("puts $new; puts [namespace exists ::larder]", require), "\n1\n")

    def test_opens_no_file(self):
        require = """
            set ::env(LARDER_FILE) [file normalize stock.txt]
            package require larder
            puts [lsort [glob -nocomplain *]]
        """
        self.assertEqual(self.tcl("", require), "script.tcl\n")

    def test_asks_for_no_file_name(self):
        (self.folder / "a.txt").write_text(STOCK)
        out = self.tcl("set env(LARDER_FILE) b.txt; puts -nonewline [larder::run a.txt list]")
        self.assertEqual(out, LIST)

    def test_neither_prints_nor_exits(self):
        lines = ["add x 1", "list", "due 2027-01-01", "take x 1", "help", ""]
        lines += ["take x 1", "eat", "add", "add x 0", "due x", "list y"]
        calls = "\n".join(f"catch {{larder::run stock.txt {{{line}}}}}" for line in lines)
        self.assertEqual(self.tcl(f"{calls}\nputs end"), "end\n")

    def test_error_codes(self):
        self.stock.write_text(STOCK)
        for words, expected in {
            "eat": ["LARDER USAGE", "unknown command: eat"],
            "due": ["LARDER USAGE", "usage: larder due DATE"],
            "due x": ["LARDER USAGE", "bad date: x"],
            "add rice 0": ["LARDER USAGE", "bad amount: 0"],
            "add { } 1": ["LARDER USAGE", "bad name:  "],
            "take bread 1": ["LARDER ITEM", "no such item: bread"],
            "take rice 1": ["LARDER UNIT", "rice is kept in g, not pcs"],
            "add rice 1l": ["LARDER UNIT", "rice is kept in g, not ml"],
            "take eggs 2": ["LARDER SHORT", "only 1 pc of eggs"],
        }.items():
            self.assertEqual(self.code(f"larder::run stock.txt {{{words}}}"), expected)
        self.stock.write_text("x\n")
        expected = ["LARDER FILE", "stock.txt:1: bad line"]
        self.assertEqual(self.code("larder::run stock.txt list"), expected)
        self.assertEqual(self.code("larder::load stock.txt"), expected)


class OnePlace(Case):
    """What is written once can be replaced once."""

    def runs(self, prelude, *lines):
        calls = "\n".join(
            f"catch {{larder::run stock.txt {{{line}}}}} text; puts [string trimright $text]"
            for line in lines
        )
        return self.tcl(f"{prelude}\n{calls}").splitlines()

    def test_amount(self):
        calls = {
            "1500 g": "1.5 kg", "999.5 g": "999.5 g", "1 pcs": "1 pc", "2 pcs": "2 pcs",
            "1000 pcs": "1000 pcs", "1000.0 ml": "1 l", "12345678 g": "12345.678 kg",
        }  # fmt: skip
        out = self.tcl("\n".join(f"puts [larder::amount {words}]" for words in calls))
        self.assertEqual(out.splitlines(), list(calls.values()))

    def test_amount_is_used(self):
        self.stock.write_text(STOCK)
        prelude = 'proc larder::amount {value unit} { return "<$unit>" }'
        got = self.runs(
            prelude, "add milk 1l", "take milk 1l", "take milk 9l", "due 2026-10-01", "list"
        )
        expected = ["milk: <ml>", "milk: <ml> left", "only <ml> of milk"]
        expected += ["2026-10-01  milk (<ml>)", "2026-10-01  rice (<g>)"]
        self.assertEqual(got[:5], expected)
        self.assertEqual(got[5].split(), ["eggs", "<pcs>"])

    def test_parse(self):
        calls = {
            "1.5kg": "1500 g", "2": "2 pcs", "2pcs": "2 pcs", "0.25l": "250 ml", "3g": "3 g",
            "10ml": "10 ml",
        }  # fmt: skip
        script = "\n".join(
            f"lassign [larder::parse {text}] value unit; puts [format {{%.10g %s}} $value $unit]"
            for text in calls
        )
        self.assertEqual(self.tcl(script).splitlines(), list(calls.values()))
        for text in ("0", "-1", "1 kg", "kg", "1lb", "1.", ""):
            got = self.code(f"larder::parse {{{text}}}")
            self.assertEqual(got, ["LARDER USAGE", f"bad amount: {text}"])

    def test_parse_is_used(self):
        prelude = "proc larder::parse {text} { list 7 g }"
        got = self.runs(prelude, "add rice lots", "add rice lots", "take rice some")
        self.assertEqual(got, ["rice: 7 g", "rice: 14 g", "rice: 7 g left"])

    def test_date(self):
        self.assertEqual(self.tcl("puts [larder::date 2028-02-29]"), "2028-02-29\n")
        for text in ("2026-02-29", "2026-2-1", "tomorrow", "", "2026-13-01"):
            got = self.code(f"larder::date {{{text}}}")
            self.assertEqual(got, ["LARDER USAGE", f"bad date: {text}"])

    def test_date_is_used(self):
        prelude = "proc larder::date {text} { return 2026-01-02 }"
        got = self.runs(prelude, "add rice 1g tomorrow", "due {next week}")
        self.assertEqual(got, ["rice: 1 g", "2026-01-02  rice (1 g)"])

    def test_load(self):
        self.stock.write_text("# x\n" + STOCK)
        out = self.tcl(
            "set stock [larder::load stock.txt]; puts [lsort [dict keys $stock]]\n"
            "dict for {name item} $stock { puts [lsort [dict keys $item]] }\n"
            "puts [dict get $stock milk unit]; puts [dict get $stock milk until]\n"
            "puts [expr {[dict get $stock flour value] == 1234567.4}]\n"
            "puts <[dict get $stock eggs until]>; puts <[larder::load none.txt]>"
        )
        expected = ["eggs flour milk oil rice {salt, fine}", *["unit until value"] * 6]
        expected += ["ml", "2026-10-01", "1", "<>", "<>"]
        self.assertEqual(out.splitlines(), expected)

    def test_save(self):
        self.stock.write_text(STOCK)
        self.tcl("larder::save new.txt [larder::load stock.txt]")
        self.assertEqual((self.folder / "new.txt").read_text(), STOCK)
        self.tcl(
            "larder::save new.txt {z {value 2.50 unit g until {}}"
            " a {value 1e3 unit ml until 2026-01-01}}"
        )
        expected = "a\t1000\tml\t2026-01-01\nz\t2.5\tg\t\n"
        self.assertEqual((self.folder / "new.txt").read_text(), expected)

    def test_load_and_save_are_used(self):
        prelude = """
            set kept {}
            proc larder::load {file} { return $::kept }
            proc larder::save {file stock} { set ::kept $stock }
        """
        got = self.runs(prelude, "add rice 2kg 2026-01-01", "list", "due 2026-01-01", "take rice 1g")
        self.assertEqual(got[0], "rice: 2 kg")
        self.assertEqual(got[1].split(), ["rice", "2", "kg", "2026-01-01"])
        self.assertEqual(got[2:], ["2026-01-01  rice (2 kg)", "rice: 1.999 kg left"])
        self.assertFalse(self.stock.exists())

    def test_add_and_take(self):
        script = """
            set a [larder::add {} rice 100 g]
            set b [larder::add $a rice 50 g 2026-01-01]
            set c [larder::take $b rice 30 g]
            set d [larder::take $c rice 120 g]
            foreach stock [list $a $b $c] {
                puts [format %g [dict get $stock rice value]]-[dict get $stock rice until]
            }
            puts <$d>
            puts [glob *]
        """
        expected = ["100-", "150-2026-01-01", "120-2026-01-01", "<>", "script.tcl"]
        self.assertEqual(self.tcl(script).splitlines(), expected)
        for call, code in {
            "larder::take {} rice 1 g": "LARDER ITEM",
            "larder::take [larder::add {} rice 1 g] rice 2 g": "LARDER SHORT",
            "larder::take [larder::add {} rice 1 g] rice 1 ml": "LARDER UNIT",
            "larder::add [larder::add {} rice 1 g] rice 1 ml": "LARDER UNIT",
        }.items():
            self.assertEqual(self.code(call)[0], code)

    def test_add_and_take_are_used(self):
        prelude = """
            proc larder::add {stock name value unit {until {}}} {
                dict set stock $name [dict create value 5 unit g until {}]
            }
            proc larder::take {stock name value unit} {
                dict set stock $name [dict create value 3 unit g until {}]
            }
        """
        got = self.runs(prelude, "add rice 1g", "take rice 1g")
        self.assertEqual(got, ["rice: 5 g", "rice: 3 g left"])


class Registry(Case):
    """larder::command and larder::run."""

    ECHO = "proc echo {word file words} { return \"$word $file [llength $words] $words\\n\" }\n"

    def test_run(self):
        self.stock.write_text(STOCK)
        self.assertEqual(self.tcl("puts -nonewline [larder::run stock.txt list]"), LIST)
        self.assertEqual(self.tcl("puts -nonewline [larder::run stock.txt {}]"), HELP)

    def test_new_command(self):
        script = (
            "larder::command count {[UNIT...]} {echo hi}\n"
            "puts -nonewline [larder::run f.txt {count {a b} c}]\n"
            "puts -nonewline [larder::run f.txt help]"
        )
        lines = HELP.splitlines(keepends=True)
        lines.insert(3, "  larder count [UNIT...]\n")
        self.assertEqual(self.tcl(self.ECHO + script), "hi f.txt 2 {a b} c\n" + "".join(lines))

    def test_no_words_in_the_usage(self):
        script = "larder::command zap {} {echo hi}; puts -nonewline [larder::run f.txt {}]"
        self.assertEqual(self.tcl(self.ECHO + script), HELP + "  larder zap\n")

    def test_taken(self):
        expected = ["LARDER COMMAND", "command already there: due"]
        self.assertEqual(self.code("larder::command due DATE {echo hi}"), expected)
        expected = ["LARDER COMMAND", "command already there: help"]
        self.assertEqual(self.code("larder::command help {} {echo hi}"), expected)

    def test_an_error_of_a_command_comes_through(self):
        prelude = (
            "proc bang {file words} { throw {LARDER ITEM} gone }\n"
            "larder::command bang {} bang"
        )
        self.assertEqual(self.code("larder::run f bang", prelude), ["LARDER ITEM", "gone"])


class Readme(Case):
    """README.md."""

    def test_section(self):
        self.assertIn("## Adding a command", (APP / "README.md").read_text().splitlines())
