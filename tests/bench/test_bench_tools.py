#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/report.py, bench/compile_time.py and bench/network/validate.py."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/network")]
import compile_time
import report
import validate


def run(name, best, copy, **more):
    """A result as Google Benchmark writes it."""
    return {"name": name + "/iterations:1/manual_time", "best_ns": best, "copy_ns": copy, "bytes": 6.0,
            "copied_bytes": 4.0, "bits": 16.0, **more}


ENCODE = "encode/fp16/float/cpu-avx2/n:1024/threads:1"
TWO = "encode/fp16/float/cpu-avx2/n:1024/threads:2"


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, runs, compiler="g++"):
        path = pathlib.Path(self.folder.name, name)
        path.write_text(json.dumps({"context": {"compiler": compiler}, "benchmarks": runs}), encoding="utf-8")
        return str(path)

    def main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with mock.patch("sys.argv", ["report.py", *arguments]), contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(err):
            return report.main(), out.getvalue()

    def test_the_best_times_of_several_files_count(self):
        a = self.file("a.json", [run(ENCODE, 3e6, 2e6)])
        b = self.file("b.json", [run(ENCODE, 4e6, 1e6)])
        results, failed = report.read([a, b], "")
        self.assertEqual(failed, [])
        self.assertEqual([(r["best_ns"], r["copy_ns"]) for r in results], [(3e6, 1e6)])

    def test_merged_files_read_as_before(self):
        more = {"iterations": 1, "run_type": "iteration", "threads": 1, "median": 1.25}
        files = [self.file("a.json", [run(ENCODE, 3e6, 2e6, **more), run(TWO, 2e6, 2e6)]),
                 self.file("b.json", [run(TWO, 1e6, 3e6), {"name": TWO, "error_occurred": True, "error_message": "no"}])]
        status, text = self.main(*files, "--merge")
        self.assertEqual(status, 0)
        self.assertNotIn("iterations\":", text)
        one = pathlib.Path(self.folder.name, "one.json")
        one.write_text(text, encoding="utf-8")
        self.assertEqual(report.read(files, ""), report.read([one], ""))

    def test_runs_are_told_apart_by_commit(self):
        context = {"date": "2026-11-22T01:02:03+00:00", "compiler": "g++ 12", "commit": "abc"}
        paths = []
        for name, commit, runs in (("a.json", "abc", [run(TWO, 1, 1)]), ("b.json", "abc", [run("norms" + ENCODE[6:], 1, 1)]),
                                   ("c.json", "abd", [run(ENCODE, 1, 1)])):
            paths.append(self.file(name, []))
            pathlib.Path(paths[-1]).write_text(json.dumps({"context": {**context, "commit": commit}, "benchmarks": runs}))
        status, text = self.main(*paths, "--runs")
        self.assertEqual(status, 0)
        self.assertIn("| 2026-11-22 | abc | g++ 12 | encode, norms |\n", text)
        self.assertIn("| 2026-11-22 | abd | g++ 12 | encode |\n", text)

    def test_compilers_are_apart(self):
        a = self.file("a.json", [run(ENCODE, 3e6, 2e6)])
        b = self.file("b.json", [run(ENCODE, 4e6, 1e6)], "clang++")
        self.assertEqual(len(report.read([a, b], "")[0]), 2)

    def test_a_row_has_time_ratio_and_share(self):
        # 6 of the copy's 8 bytes in 3 times its time: a quarter of its bandwidth.
        code, text = self.main(self.file("a.json", [run(ENCODE, 3e6, 1e6)]))
        self.assertEqual(code, 0)
        self.assertIn("### n = 1024", text)
        self.assertIn("| encode | fp16 | float | cpu-avx2 | 1 | g++ | 16.00 | - | 3.00 | 3.00 ms | 6.00 | 25 % |", text)

    def test_the_median_of_medians_leads_and_the_best_stands_beside_it(self):
        files = [self.file(f"{i}.json", [run(ENCODE, 3e6, 1e6, median=m)]) for i, m in enumerate((2.5, 2.75, 4.0))]
        _, text = self.main(*files)
        self.assertIn("| bits | over_copy | best | best time |", text)
        self.assertIn("| 16.00 | 2.75 | 3.00 | 3.00 ms |", text)
        _, text = self.main(*files, "--ratios")
        self.assertIn("| 16.00 | 2.75 (3.00) |", text)

    def test_ratios_have_a_column_for_each_number_of_threads(self):
        code, text = self.main(self.file("a.json", [run(ENCODE, 3e6, 1e6), run(TWO, 1.5e6, 1e6)]), "--ratios")
        self.assertEqual(code, 0)
        self.assertIn("| encode | fp16 | float | cpu-avx2 | g++ | 16.00 | - (3.00) | - (1.50) |", text)

    def test_what_failed_is_told(self):
        wrong = run(TWO, 0, 0, error_occurred=True, error_message="not enough memory")
        code, text = self.main(self.file("a.json", [run(ENCODE, 3e6, 1e6), wrong]))
        self.assertEqual(code, 1)
        self.assertIn(f"failed: {TWO} (g++): not enough memory", text)

    def test_no_results_are_a_sentence(self):
        full, missing = self.file("a.json", [run(ENCODE, 3e6, 1e6)]), str(pathlib.Path(self.folder.name, "none.json"))
        empty, cut, other = (pathlib.Path(self.folder.name, name) for name in ("empty.json", "cut.json", "other.json"))
        empty.write_text("")
        cut.write_text('{"context": {}, "benchmarks": [')
        other.write_text("[1, 2]")
        for arguments, words in (((full, "--filter", "^decode/"), "no result's name matches --filter ^decode/"),
                                 ((full, "--filter", "^decode/", "--slowest", "3"), "no result's name matches"),
                                 ((full, "--filter", "("), "is no regular expression"),
                                 ((missing,), "none.json cannot be read"), ((str(empty),), "empty.json holds no results"),
                                 ((str(cut), "--merge"), "cut.json holds no results"),
                                 ((str(other), "--runs"), "other.json is not what a benchmark writes")):
            out = subprocess.run([sys.executable, ROOT / "bench/report.py", *arguments], capture_output=True, text=True,
                                 check=False)
            self.assertEqual((out.returncode, out.stdout), (1, ""), arguments)
            self.assertEqual(out.stderr.count("\n"), 1, out.stderr)
            self.assertIn(words, out.stderr)

    def test_run_sh_tells_that_nothing_matches(self):
        # Programs that do what benchmarks do where their filter matches nothing; what builds them does nothing.
        folder = pathlib.Path(self.folder.name)
        (folder / "path").mkdir()
        (folder / "build/bin").mkdir(parents=True)
        for path, text in (("path/cmake", "exit 0"),
                           ("build/bin/tersum.bench.encode", 'echo "Failed to match any benchmarks against regex: x"; exit 1')):
            (folder / path).write_text("#!/bin/sh\n" + text + "\n", encoding="utf-8")
            (folder / path).chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder / 'path'}:{os.environ['PATH']}", "BUILD": str(folder / "build")}
        out = subprocess.run(["bash", ROOT / "bench/run.sh", "--quick", "--filter", "nothing", "--out", folder / "out", "encode"],
                             capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL)
        self.assertEqual(out.returncode, 1)
        self.assertIn("there are no results: no benchmark's name matches the filter", out.stderr)
        self.assertNotIn("Traceback", out.stdout + out.stderr)


class CompileTime(unittest.TestCase):
    def test_presets_are_those_of_the_header(self):
        text = "inline constexpr a<1>    one{};\ninline constexpr b two{.chunker = {.bits = 2}};\nusing three = c;\n"
        self.assertEqual(compile_time.preset_names(text), ["one", "two"])
        header = (ROOT / "include/tersum/presets.hpp").read_text(encoding="utf-8")
        self.assertEqual(len(compile_time.preset_names(header)), header.count("\ninline constexpr "))

    def test_headers_are_those_to_include(self):
        names = compile_time.public_headers(ROOT / "include")
        self.assertIn("tersum/tersum.hpp", names)
        self.assertIn("tersum/tersum.cuh", names)
        self.assertFalse([n for n in names if "/detail/" in n or "/interop/" in n])

    def test_tables_have_the_slowest_first_and_a_column_for_each_compiler(self):
        results = [{"compiler": c, "name": n, "seconds": s, "kind": "presets"}
                   for c, n, s in (("g++", "fp16", 1.0), ("g++", "slow", 2.5), ("nvcc", "slow", 4.0))]
        self.assertEqual(compile_time.markdown(results).splitlines(), [
            "| preset | g++, s | nvcc, s |", "|---|---:|---:|", "| `slow` | 2.50 | 4.00 |", "| `fp16` | 1.00 | - |"])

    def test_a_page_says_what_it_was_measured_with(self):
        document = {"command": "c", "commit": "abc", "versions": {"g++": "12.2.0"}, "repeat": 3, "results": []}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.json")
            path.write_text(json.dumps(document), encoding="utf-8")
            out = io.StringIO()
            with mock.patch("sys.argv", ["compile_time.py", "--show", str(path)]), contextlib.redirect_stdout(out):
                self.assertEqual(compile_time.main(), 0)
        self.assertIn("commit abc, g++ 12.2.0, median of 3: `c`", out.getvalue())

    def test_a_filter_without_a_match_is_a_sentence(self):
        for pattern, status, words in (("nothing_has_this_name", 1, "no name matches --filter nothing_has_this_name"),
                                       ("(", 2, "is no regular expression")):
            out = subprocess.run([sys.executable, ROOT / "bench/compile_time.py", "--compilers", "g++", "--filter", pattern],
                                 capture_output=True, text=True, check=False)
            self.assertEqual(out.returncode, status)
            self.assertIn(words, out.stderr)
            self.assertNotIn("Traceback", out.stderr)

    @unittest.skipUnless(shutil.which("g++"), "no g++")
    def test_a_header_takes_time_and_a_broken_one_fails(self):
        with mock.patch.object(compile_time, "sources", lambda what, compiler: [
                ("tersum/version.hpp", "#include <tersum/version.hpp>\n"), ("broken", "#error no\n")]), \
                contextlib.redirect_stderr(io.StringIO()):
            results, failed = compile_time.measure(["g++"], ["headers"], "", 3)
        self.assertEqual(failed, 1)
        self.assertEqual([(r["name"], len(r["runs"])) for r in results], [("tersum/version.hpp", 3)])
        self.assertGreater(results[0]["seconds"], 0)
        self.assertEqual(results[0]["seconds"], sorted(results[0]["runs"])[1])


class Validate(unittest.TestCase):
    def test_a_crossing_lies_between_the_measurements_around_it(self):
        self.assertAlmostEqual(validate.crossing([(400, 1.0), (100, -1.0), (50, -2.0)]), 200)
        self.assertIsNone(validate.crossing([(100, -1.0), (200, -0.5)]))

    def test_there_are_20_setups_in_a_quick_run_and_200_in_a_whole_one(self):
        def count(quick):
            keys = set()
            for transport, ranks, rate, sizes, codecs, pieces, _ in validate.runs(quick, 2):
                keys |= {(transport, ranks, rate, size, codec, cut) for size in sizes for codec in codecs
                         for cut in {1, pieces} if rate > 0}
            return len(keys)

        self.assertEqual(count(True), 20)
        self.assertGreaterEqual(count(False), 200)

    def test_a_measurement_beside_others_is_repeated(self):
        # Others used so many ticks in each attempt of a second.
        per_second = os.sysconf("SC_CLK_TCK")
        for ticks, chosen, calls in (((0, 0, 0), 0, 1), ((per_second, 0, 0), 1, 2),
                                     ((4 * per_second, per_second, 2 * per_second), 1, 3)):
            results = iter(range(3))
            clock = iter(range(100))
            used = [now for more in ticks for now in (7, 7 + more)]
            with mock.patch.object(validate, "used_by_processes", side_effect=used), \
                    mock.patch.object(validate.time, "monotonic", side_effect=lambda clock=clock: next(clock)), \
                    contextlib.redirect_stderr(io.StringIO()):
                result, others = validate.alone(lambda results=results: next(results), 3)
            self.assertEqual((result, others), (chosen, ticks[chosen] / per_second))
            self.assertEqual(3 - len(list(results)), calls)

    def test_medians_of_all_runs_of_a_setup_count(self):
        def run(measured, predicted):
            return {"setups": [{"transport": "gloo", "ranks": 2, "megabits": 100, "coordinates": 7, "pieces": 1, "codec": "fp16",
                                "measured": measured, "predicted": predicted, "bandwidth": 1e7, "break_even": 0}]}

        runs = {"one": run(1.0, 3.0), "one #2": run(3.0, 1.0), "one #3": run(2.0, 1.5), "another with the same setup": run(9.0, 9.0)}
        merged, = validate.setups_of({"runs": runs})
        self.assertEqual((merged["measured"], merged["predicted"]), (2.0, 1.5))

    def test_what_was_measured_is_not_measured_again(self):
        setup = {"transport": "gloo", "ranks": 2, "megabits": 100, "coordinates": 7, "pieces": 1, "codec": "fp16", "predicted": 1.05,
                 "measured": 1.0, "bandwidth": 1e7, "break_even": 0}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "validation.json")
            runs = {validate.key_of(run): {"probe": {"copy_rate": 1e9}, "setups": [setup]} for run in validate.runs(True, 2)}
            measured = {"version": 1, "cores": 2, "runs": runs}
            self.assertEqual(json.loads(validate.text_of(measured)), measured)
            file.write_text(validate.text_of(measured), encoding="utf-8")
            out = io.StringIO()
            with mock.patch.object(sys, "argv", ["validate.py", "--quick", "--json", str(file)]), \
                    contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(validate.main(), 0)
            self.assertIn("1 setups: 100 % within 10 %, median 5.0 % off", out.getvalue())


class Network(unittest.TestCase):
    """bench/network/run.sh where a namespace can be made, but nothing can be run in it, as in a chroot."""

    def test_it_says_that_it_skips_and_leaves_no_namespace(self):
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder, "made")
            stand_in = pathlib.Path(folder, "ip")
            stand_in.write_text(f"""#!/bin/sh
case "$1 $2" in
  "netns add") echo "$3" >>{made} ;;
  "netns list") cat {made} ;;
  "netns del") sed -i "/^$3$/d" {made} ;;
  "netns exec") echo "mount --make-rslave / failed: Invalid argument" >&2; exit 255 ;;
esac
""")
            pathlib.Path(folder, "tc").write_text("#!/bin/sh\n")
            for name in ("ip", "tc"):
                pathlib.Path(folder, name).chmod(0o755)
            done = subprocess.run(["bash", ROOT / "bench/network/run.sh", "2", "1000", "1", "10"], capture_output=True, text=True, check=False,
                                  env=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", TRANSPORT="mpi"))
            self.assertEqual((done.returncode, done.stdout), (77, "skipped: network namespaces are not allowed here\n"), done.stderr)
            self.assertEqual(made.read_text(), "")


if __name__ == "__main__":
    unittest.main()
