#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/gpu_check.sh and bench/gpu_page.py on machines without a GPU.

    test_gpu_check.py                       with programs and tools that stand in for all others
    test_gpu_check.py --simulated FOLDER    with the programs of a build folder that run on the simulated device, too

Figures in the stand-ins are chosen so that what follows from them is easily computed. They are of no GPU.
"""

import contextlib
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench/gpu_check.sh"
sys.path[:0] = [str(ROOT / "bench")]
import gpu_page
import predict

SIMULATED = None

CHUNK = ("void tersum::v0::detail::chunk_kernel<tersum::v0::detail::{}, tersum::v0::codec<tersum::v0::fixed_chunks<(int)1024>>, "
         "float>(int)")
ENCODE, DECODE = CHUNK.format("encode_kernel<(bool)0>"), CHUNK.format("decode_kernel<(bool)0>")


def result(operation, preset, n, best, copy, size, copied=4.0, element="float"):
    """What a benchmark says of one run."""
    return {"name": f"{operation}/{preset}/{element}/cuda/n:{n}/threads:1/manual_time", "run_type": "iteration", "best_ns": best,
            "copy_ns": copy, "bytes": size, "copied_bytes": copied, "bits": 4.0, "median": best / copy}


def csv_of(launches):
    """What ncu prints of launches (name, ns): the time, the traffic of a copy at 1 TB/s, stalls and pipes."""
    heads = ["ID", "Process ID", "Kernel Name", "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
             "launch__registers_per_thread", "smsp__issue_active.avg.pct_of_peak_sustained_active",
             "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
             "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio",
             "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active"]
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(heads)
    writer.writerow(["", "", "", "ns", "byte", "byte", "register/thread", "%", "inst", "inst", "%"])
    for i, (name, ns) in enumerate(launches):
        writer.writerow([i, 7, name, f"{ns:,}", f"{500 * ns:,}", 500 * ns, 64, "40.5", "8.25", "2.5", "55"])
    return "==PROF== Connected\n" + out.getvalue()


class Page(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, text):
        path = pathlib.Path(self.folder.name, name)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def page(self, runs, csvs=(), device="NVIDIA H200", predictions=None):
        files = [self.path("a.json", json.dumps({"context": {"device": device}, "benchmarks": runs}))]
        arguments = [*files, "--ncu", *(self.path(f"ncu.{name}.csv", text) for name, text in csvs)]
        if predictions:
            arguments += ["--predictions", self.path("p.json", json.dumps(predictions))]
        out = io.StringIO()
        with mock.patch("sys.argv", ["gpu_page.py", *arguments]), contextlib.redirect_stdout(out):
            self.assertEqual(gpu_page.main(), 0)
        return out.getvalue()

    def test_kernels_are_called_as_in_the_sources(self):
        for name, short in (
                (ENCODE, "encode_kernel<false>"),
                (DECODE.replace("(bool)0", "true"), "decode_kernel<true>"),
                ("void tersum::v0::detail::exchange_kernel<tersum::v0::detail::steps_kernel, A<B, C>, float>(X)", "steps_kernel"),
                ("void tersum::v0::detail::block_kernel<tersum::v0::detail::reduce_vectors_kernel<tersum::v0::saturating_add<(int)4>>>(X)",
                 "reduce_vectors_kernel<saturating_add<4>>"),
                ("void <unnamed>::copy_kernel(uint4 *, const uint4 *)", "copy_kernel"),
                ("(anonymous namespace)::copy_kernel(uint4*)", "copy_kernel")):
            self.assertEqual(gpu_page.short_name(name), short)

    def test_launches_are_read_with_their_separators_and_without_the_row_of_units(self):
        launches = gpu_page.read_kernels(self.path("ncu.a.csv", csv_of([(ENCODE, 1234000), (DECODE, 10)])))
        self.assertEqual([(k["name"], k["ns"], k["bytes"]) for k in launches],
                         [("encode_kernel<false>", 1234000, 1234000000), ("decode_kernel<false>", 10, 10000)])
        self.assertEqual((launches[0]["stall"], launches[0]["pipe"], launches[0]["registers"]),
                         ((8.25, "long_scoreboard"), (55, "alu"), 64))
        self.assertIsNone(launches[0]["occupancy"])

    def test_predictions_stand_beside_measurements_and_the_three_largest_gaps_are_named(self):
        n = 2**28
        # Copies of 8 bytes in 2 ns a coordinate: 4 bytes a ns.
        predictions = {"what": "Guesses.", "devices": ["H100", "H200"], "rows": [
            {"what": name, "preset": name, "result": f"encode/{name}/float", "us": [1, 2], "percent": [1, 50]}
            for name in ("even", "half", "twice", "quarter", "absent")] + [
                {"what": "decode", "preset": "even", "result": "decode/even/float", "us": [1, 2], "percent": [1, 50]},
                {"what": "kernel", "preset": "p", "profiled": "p", "kernel": "decode_kernel<false>", "bytes": 4, "us": [1, 2], "percent": [1, 50]},
                {"what": "small", "preset": "p", "profiled": "p", "kernel": "encode_kernel<false>", "bytes": 0, "us": [1, 2], "percent": [1, 0]},
                {"what": "pair", "preset": "quarter", "result": "encode/quarter/float", "n": 2**20, "us": [1, 2]}]}
        runs = [result("ceiling", "read", n, n, 2 * n, 4.0)]
        runs += [result("encode", name, n, ns * n, 2 * n, 8.0)
                 for name, ns in (("even", 4), ("half", 8), ("twice", 2), ("quarter", 16))]
        runs += [result("encode", "quarter", size, 3000, 2 * n, 8.0) for size in (2**20, 2**29)]  # other sizes, which must not count
        page = self.page(runs, [("p", csv_of([(ENCODE, 3000), (DECODE, 20 * n), (DECODE, 20 * n)]))], predictions=predictions)
        self.assertIn("| even | 50 % | 50 % | 1.00 |", page)
        self.assertIn("| twice | 50 % | 100 % | 2.00 |", page)
        self.assertIn("| kernel | 50 % | 5 % | 0.10 |", page)
        self.assertIn("| small | 2 us | 3 us | 1.50 |", page)
        self.assertIn("| decode | 50 % | - | - |", page)
        self.assertIn("| pair | 2 us | 3 us | 1.50 |", page)
        self.assertEqual(re.findall(r"^\d\. (\w+):", page, re.MULTILINE), ["kernel", "quarter", "half"])
        self.assertIn("Not measured: decode.", page)
        self.assertIn("Presets that were not run: absent.", page)
        self.assertIn("| kernel: read | 0.004 | 100 % |", page)
        self.assertIn("| p | `decode_kernel<false>` | 2 |", page)

    def test_another_device_is_told(self):
        self.assertIn("the predictions are those for H100", self.page([], device="NVIDIA L40"))
        self.assertNotIn("the predictions are those", self.page([], device="NVIDIA H100 80GB HBM3"))

    def test_exchanges_have_a_column_for_each_size(self):
        runs = [result("pair", "a", 4096, 5000, 10, 8.0), result("pair_replayed", "a", 4096, 2500, 10, 8.0),
                result("pair", "a", 2**20, 9000, 10, 8.0), result("pair_tensors", "a", 2**20, 9500, 10, 8.0)]
        page = self.page(runs)
        self.assertIn("| preset | gradient | 2^12 | 2^20 |", page)
        self.assertIn("| a | float | 5.0 / 2.5 | 9.0 / - |", page)
        self.assertIn("| a | float | 9.0 / 9.5 / - |", page)

    def test_nothing_measured_is_said(self):
        page = self.page([])
        for words in ("Not measured.", "Nothing that was predicted was measured.", "Not profiled."):
            self.assertIn(words, page)

    def test_predictions_are_what_the_counts_give(self):
        table = predict.predictions()
        self.assertEqual(gpu_page.PREDICTIONS.read_text(encoding="utf-8"), predict.as_text(table), "bench/predict.py --write")
        self.assertEqual({one["preset"] for one in table["rows"]}, set(predict.codecs()))
        rows = {one["what"] for one in table["rows"]}
        for exchange, counts in json.loads((ROOT / "tests/codegen/traffic_budgets.json").read_text(encoding="utf-8")).items():
            preset, element = re.match(r"\^\w+/(\w+)/(\w*)", exchange).groups()
            for kernel in [] if "misaligned" in exchange else counts["kernels"]:
                if not kernel.startswith(predict.BEFORE):
                    self.assertIn(f"{preset}, {element or 'float'}: {predict.LATER.get(kernel, kernel)}", rows)
        benchmark = (ROOT / "bench/cuda.bench.cu").read_text(encoding="utf-8")
        for one in table["rows"]:
            if "result" in one:
                self.assertIn(f'{{"{one["result"].split("/")[0]}", part::', benchmark)

    def test_the_page_has_the_constants_of_predictions(self):
        page = " ".join((ROOT / "bench/README.md").read_text(encoding="utf-8").split())
        for device, (_, multiprocessors, ghz, bandwidth) in predict.DEVICES.items():
            self.assertIn(f"{device} {multiprocessors}, {ghz:g} GHz, {bandwidth:g} TB/s", page)
        for constant in (f"launches * {predict.LAUNCH_US:g} us", f"at {predict.COPY:g} of the bandwidth",
                         f"sectors of all requests / {predict.SECTORS_A_CLOCK}", f"over `{predict.ISSUE:g} * {predict.SCHEDULERS} m f`"):
            self.assertIn(constant, page)

    def test_a_kernel_whose_budget_is_gone_is_told(self):
        lines = [line for line in predict.budgets() if "derive_and_encode" not in line["kernel"] and "encode_kernel<false>" not in line["kernel"]]
        with mock.patch("predict.budgets", lambda: lines), self.assertRaisesRegex(predict.Stale, "no budget on .* for .*encode_kernel"):
            predict.predictions()


STAND_INS = {
    "nvidia-smi": 'case "$1" in *name*) echo "NVIDIA H200" ;; *compute_cap*) echo 9.0 ;; *) echo "driver_version"; echo 1 ;; esac',
    "nvcc": 'echo "release 0"',
    # The options must be there; the rest is the program and its arguments.
    "compute-sanitizer": """
        [ "$1" = --tool ] && { [ "$2" = memcheck ] || [ "$2" = racecheck ]; } && [ "$3 $4" = "--error-exitcode 9" ] || exit 3
        echo "$2 ${5##*/}" >>"$STAND_IN_LOG"
        shift 4
        exec "$@"
        """,
    # Runs the program between the marks for the profiler, and makes a table of the kernels that it launched there, or of one.
    "ncu": f"""
        case " $* " in
        *" --import "*)
          exec {sys.executable} "$STAND_IN_CSV" "$2"
          ;;
        esac
        [[ " $* " == *" --clock-control none "* && " $* " == *" --profile-from-start off "* ]] || exit 3
        [[ " $* " == *" --section MemoryWorkloadAnalysis "* && " $* " == *" --section SourceCounters "* ]] || exit 3
        while [ "$1" != --export ]; do shift; done
        report=$2
        shift 2
        [ -n "$TERSUM_PROFILE" ] || exit 3
        TERSUM_SIMULATED_COUNTS=$report.ncu-rep "$@" || exit
        [ -s "$report.ncu-rep" ] || echo encode_kernel >"$report.ncu-rep"
        """,
}
CSV = f"""
    import subprocess, sys
    sys.path[:0] = [{str(ROOT / "tests/bench")!r}]
    import test_gpu_check
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("0\\t")]  # those between the marks
    text = "".join(line.rpartition("\\t")[2] for line in lines)
    names = subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    sys.stdout.write(test_gpu_check.csv_of([(name, 1000) for name in names]))
    """
# A benchmark that has what the filter asks for, by name. STAND_IN_KILLED is a file with the script's process, which it then kills.
BENCHMARK = """
    import json, os, re, sys
    options = dict(a[2:].split("=", 1) for a in sys.argv[1:] if "=" in a)
    runs = [run for run in json.loads(RUNS) if re.search(options.get("benchmark_filter", ""), run["name"])]
    if "--benchmark_list_tests" in sys.argv:
        print("\\n".join(run["name"] for run in runs))
    elif "benchmark_out" in options:
        if "STAND_IN_KILLED" in os.environ and options["benchmark_out"].endswith("/norms.json"):
            with open(os.environ["STAND_IN_KILLED"]) as file:
                os.kill(int(file.read()), 9)
        with open(options["benchmark_out"], "w") as file:
            json.dump({"context": {"device": "NVIDIA H200"}, "benchmarks": runs}, file, indent=2)
    """
RUNS = [result(operation, preset, 2**28, 2**28, 2**28, 8.0) for operation, preset in (
    ("ceiling", "copy"), ("encode", "rotated_sat4"), ("norms", "rotated_sat4"), ("pair", "rotated_sat4"),
    ("pair_replayed", "rotated_sat4"), ("pair_misaligned", "rotated_sat4"))]


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.programs, self.out = self.folder / "build/programs", self.folder / "out"
        for made in (self.programs, self.folder / "path"):
            made.mkdir(parents=True)
        for name, text in STAND_INS.items():
            self.script(self.folder / "path" / name, textwrap.dedent(text))
        (self.folder / "launches.py").write_text(textwrap.dedent(CSV), encoding="utf-8")
        (self.folder / "benchmark.py").write_text(f"RUNS = {json.dumps(RUNS)!r}\n" + textwrap.dedent(BENCHMARK), encoding="utf-8")
        self.log = self.folder / "log"
        self.log.write_text("")

    def script(self, path, text):
        path.write_text("#!/usr/bin/env bash\n" + text, encoding="utf-8")
        path.chmod(0o755)

    def stand_in_programs(self, **tests):
        """Benchmarks, and tests that end with a status."""
        for name in ("ceilings", "cuda", "low_rank", "select", "rotate"):
            self.script(self.programs / f"tersum.bench.{name}.cuda",
                        f'exec {sys.executable} -IS {self.folder / "benchmark.py"} "$@"\n')
        for name, status in tests.items():
            self.script(self.programs / f"tersum.test.{name.replace('__', '.')}.cuda", f"echo {name} says so\nexit {status}\n")

    def environment(self, **more):
        return {**os.environ, "PATH": f"{self.folder / 'path'}:{os.environ['PATH']}", "BUILD": str(self.folder / "build"),
                "OUT": str(self.out), "STAND_IN_LOG": str(self.log), "STAND_IN_CSV": str(self.folder / "launches.py"), **more}

    def check(self, *arguments, **more):
        return subprocess.run(["bash", SCRIPT, *arguments], capture_output=True, text=True, check=False,
                              env=self.environment(**more), stdin=subprocess.DEVNULL)

    def test_all_parts_run_and_leave_a_page(self):
        self.stand_in_programs(device__arrays=0, execute__cuda_presets=0, execute__cuda_more_codes=77, core__late=124)
        out = self.check("--run-only")
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
        for words in ("passed: tersum.test.device.arrays.cuda", "skipped: tersum.test.execute.cuda_more_codes.cuda",
                      "out of time: tersum.test.core.late.cuda", "repeats: 20 of 20 of execute.cuda_presets",
                      "compute-sanitizer passed: racecheck tersum.test.execute.cuda_presets.cuda", "ncu: rotated_sat4, 1 launches",
                      "skipped: ncu of thc_wide4, which is not built", "0 failed"):
            self.assertIn(words, out.stdout)
        self.assertEqual(sorted(self.log.read_text().split("\n")), ["", *(
            f"{tool}.cuda" for tool in ("memcheck tersum.test.device.arrays", "memcheck tersum.test.execute.cuda_presets",
                                        "racecheck tersum.test.execute.cuda_presets"))])
        page = (self.out / "gpu.md").read_text(encoding="utf-8")
        self.assertRegex(page, r"\n\| encode, rotated_sat4, float \| \d\d % \| 100 % \| 1.\d\d \|")
        self.assertIn("| rotated_sat4 | `encode_kernel` | 1 |", page)
        self.assertRegex(out.stdout, r"1. [^\n]*: \d+ \S[^\n]* were predicted")
        files = sorted(path.name for path in self.out.iterdir())
        self.assertLessEqual(len(files), 8)
        self.assertLessEqual({"gpu.md", "summary.txt", "cuda.md", "cuda.json", "details.tar.gz", "profiles.tar.gz"}, set(files))
        with tarfile.open(self.out / "details.tar.gz") as tar:
            names = set(tar.getnames())
        self.assertLessEqual({f"details/{name}" for name in (
            "tersum.test.device.arrays.cuda.txt", "sanitizer.memcheck.tersum.test.device.arrays.cuda.txt", "ncu.rotated_sat4.csv",
            "encode.json", "log.txt")}, names)

    def test_each_part_runs_alone(self):
        self.stand_in_programs(device__arrays=0, execute__cuda_more_codes=0)
        self.script(self.programs / "tersum.test.core.loud.cuda", "head -c 18000000 /dev/urandom\n")
        for part, here, elsewhere in (("first", "device.arrays", "execute.cuda_more_codes"),
                                      ("second", "execute.cuda_more_codes", "device.arrays")):
            out = self.check("--run-only", PARTS=part)
            self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
            self.assertIn(f"passed: tersum.test.{here}.cuda", out.stdout)
            self.assertNotIn(elsewhere, out.stdout)
            for words in (f"parts: {part}", "nvcc: release 0"):
                self.assertIn(words, (self.out / "summary.txt").read_text())
        self.assertIn("left out: tersum.test.core.loud.cuda.txt", out.stdout)
        self.assertLessEqual((self.out / "details.tar.gz").stat().st_size, 16 << 20)
        self.assertEqual(self.check("--run-only", PARTS="third").returncode, 2)

    def test_kernels_that_wait_for_others_run_behind_the_benchmarks(self):
        self.stand_in_programs(core__other=0, nccl_device__streams=124)
        self.script(self.programs / "tersum.test.interop.nccl", "exit 124\n")
        out = self.check("--run-only", PARTS="second")
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
        self.assertRegex(out.stdout, r"(?s)passed: tersum.test.core.other.cuda.*== benchmarks.*== tests.streams.*"
                                     r"out of time: tersum.test.nccl_device.streams.cuda.*out of time: 1 NCCL ranks, and more of them")
        self.assertNotIn("2 NCCL ranks", out.stdout)

    def test_a_test_that_fails_makes_it_fail_and_so_does_a_part_that_shows_nothing(self):
        self.stand_in_programs(device__arrays=1)
        for program in self.programs.glob("tersum.bench.*"):
            program.unlink()
        out = self.check("--run-only")
        self.assertEqual(out.returncode, 1)
        self.assertIn("FAILED: tersum.test.device.arrays.cuda (exit 1", out.stdout)
        self.assertIn("FAILED: compute-sanitizer memcheck tersum.test.device.arrays.cuda (exit 1", out.stdout)
        for words in ("device__arrays says so", "FAILED: no test has passed", "FAILED: nothing was measured"):
            self.assertIn(words, out.stdout)
        self.assertIn("FAILED", (self.out / "summary.txt").read_text())

    def test_a_benchmark_with_an_error_makes_it_fail(self):
        self.stand_in_programs(device__arrays=0)
        self.script(self.programs / "tersum.bench.ceilings.cuda",
                    f"echo 'ERROR OCCURRED: none'\nexec {sys.executable} -IS {self.folder / 'benchmark.py'} \"$@\"\n")
        out = self.check("--run-only")
        self.assertEqual(out.returncode, 1)
        self.assertIn("FAILED: benchmarks of ceilings: some have errors", out.stdout)

    def test_a_killed_run_leaves_what_it_has(self):
        self.stand_in_programs(device__arrays=0)
        pid = self.folder / "pid"
        self.script(self.folder / "start", f'echo $$ >{pid}\nexec bash {SCRIPT} --run-only\n')
        out = subprocess.run([self.folder / "start"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                             env=self.environment(STAND_IN_KILLED=str(pid)))
        self.assertEqual(out.returncode, -9)
        self.assertIn("passed: tersum.test.device.arrays.cuda", (self.out / "summary.txt").read_text())
        self.assertTrue((self.out / "details.tar.gz").stat().st_size > 0)

    def test_without_a_gpu_nothing_runs(self):
        self.stand_in_programs(device__arrays=0)
        self.script(self.folder / "path/nvidia-smi", "echo No devices were found\n")
        out = self.check("--run-only")
        self.assertEqual(out.returncode, 1)
        self.assertIn("no GPU here: nothing was run", out.stdout)

    def test_what_was_packed_is_unpacked(self):
        self.stand_in_programs(device__arrays=0)
        with tarfile.open(self.folder / "build/programs.tar.gz", "w:gz") as tar:
            tar.add(self.programs, "programs")
        for path in self.programs.iterdir():
            path.unlink()
        out = self.check("--run-only", PARTS="first")
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
        self.assertIn("passed: tersum.test.device.arrays.cuda", out.stdout)

    def test_no_programs_are_told(self):
        out = self.check("--run-only")
        self.assertEqual(out.returncode, 1)
        self.assertIn("build them with --build-only", out.stderr)

    def packed(self, *options, **more):
        """What --build-only says where cmake finds a doctest of this folder, and the arguments with which it was called."""
        config = self.folder / "doctest/lib/cmake/doctest/doctestConfig.cmake"
        config.parent.mkdir(parents=True)
        config.write_text("if(NOT TARGET doctest::doctest)\nadd_library(doctest::doctest INTERFACE IMPORTED)\n" +
                          "\n".join(f"{option}\n" for option in options) + "endif()\n")
        # What builds the rest does nothing.
        real = subprocess.run(["bash", "-c", "command -v cmake"], capture_output=True, text=True, check=True).stdout.strip()
        self.script(self.folder / "path/cmake", 'echo "$*" >>"$STAND_IN_LOG"\n'
                    '[[ $* != *"--preset cuda"* && $* != *"--target tersum"* ]] || exit 0\n' + f'exec {real} "$@"\n')
        out = self.check("--build-only", DOCTEST_DIR=str(self.folder / "doctest"), **more)
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
        self.assertTrue((self.folder / "build/programs.tar.gz").exists())
        return out.stdout, self.log.read_text()

    def test_a_package_that_compiles_is_taken(self):
        # Not linked: it needs an implementation, as doctest does.
        header = self.folder / "include/doctest/doctest.h"
        header.parent.mkdir(parents=True)
        header.write_text("void implementation();\nstatic int const called = (implementation(), 0);\n")
        text, arguments = self.packed(f'target_include_directories(doctest::doctest INTERFACE "{self.folder / "include"}")',
                                      TESTS="device", ARCHITECTURE="90")
        self.assertNotIn("skipped: the tests", text)
        for words in ("-DTERSUM_BUILD_TESTS=ON", "-DCMAKE_CUDA_ARCHITECTURES=90-real", "-DTERSUM_BENCH_PRESETS=rotated_sat4;",
                      "-DTERSUM_TEST_ONLY=(device).*\\.cuda$", "-DTERSUM_TRANSPORTS=OFF"):
            self.assertIn(words, arguments)

    def test_a_package_that_does_not_compile_is_not_taken(self):
        # Its configuration is found, its header is not.
        text, arguments = self.packed("target_compile_options(doctest::doctest INTERFACE -nostdinc++ -nostdinc)")
        self.assertIn("skipped: the tests; there is no doctest that compiles", text)
        self.assertIn("-DTERSUM_BUILD_TESTS=OFF", arguments)

    def test_programs_of_more_than_30_mb_are_refused(self):
        for name, text in (("cmake", 'case "$*" in *"--target tersum"*) mkdir -p "$BUILD/bin" && cp "$PROGRAM" "$BUILD/bin/" ;; esac'),
                           ("strip", 'cp "$3" "$2"'), ("ldd", "true")):
            self.script(self.folder / "path" / name, text + "\n")
        program = self.folder / "tersum.test.core.types.cuda"
        for megabytes, status in ((29, 0), (31, 1)):
            program.write_bytes(os.urandom(megabytes << 20))
            program.chmod(0o755)
            out = self.check("--build-only", PROGRAM=str(program))
            self.assertEqual(out.returncode, status, out.stdout + out.stderr)
            self.assertEqual("programs.tar.gz has more than 30 MB" in out.stdout, bool(status))

    def test_programs_for_compute_sanitizer_are_tests_that_there_are(self):
        kinds = re.search(r"^kinds=\((.*?)\)", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1].split()
        self.assertGreaterEqual(len(kinds), 5)
        for kind in kinds:
            self.assertTrue((ROOT / "tests" / f"{kind.replace('.', '/', 1)}.cuda.test.cu").exists(), kind)

    def test_all_parts_run_on_the_simulated_device(self):
        if SIMULATED is None:
            self.skipTest("no build folder")
        for name in ("ceilings", "cuda", "low_rank", "select", "rotate"):
            simulated = SIMULATED / f"bin/tersum.test.bench.{name}.simulated"
            # CUB's sort and cuSOLVER do not run there.
            self.script(self.programs / f"tersum.bench.{name}.cuda", f"""
                case "$*" in *'=^sort/'* | *'=/householder_'*) exec {sys.executable} -IS {self.folder / "benchmark.py"} "$@" ;; esac
                exec {simulated} "${{@//(powersgd|gram_schmidt)_/powersgd_r4/}}"
                """)
        for name in ("core.types", "device.arrays"):
            (self.programs / f"tersum.test.{name}.cuda").symlink_to(SIMULATED / f"bin/tersum.test.{name}.simulated")
        out = self.check("--run-only", TERSUM_SMALL="1")
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
        for words in ("passed: tersum.test.core.types.cuda", "compute-sanitizer passed: memcheck tersum.test.device.arrays.cuda"):
            self.assertIn(words, out.stdout)
        for words in ("is not built\n", "out of time"):
            self.assertNotIn(words, re.sub(r".*(: ncu of|NCCL ranks).*\n", "", out.stdout))
        page = (self.out / "gpu.md").read_text(encoding="utf-8")
        # Every kernel of an exchange of two ranks.
        kernels = dict(re.findall(r"^\| rotated_sat4 \| `(.*?)` \| (\d+) \|", page, re.MULTILINE))
        for name in ("norms_kernel<false>", "derive_and_encode_kernel", "decode_kernel<false>", "finish_kernel"):
            self.assertEqual(kernels.get(name), "2", name)
        self.assertIn("reduce_vectors_kernel<saturating_add<4>>", kernels)
        for preset in ("rotated_sat4_ef", "allocated_sat_4", "topkc_b2", "two_shot_4", "metric_2"):
            self.assertIn(f"\n| {preset} | `", page)
        for words in ("| kernel: half sectors |", "| rotated_sat4 | float | ", "| preset | gradient | 2^12 | 2^15 |"):
            self.assertIn(words, page)
        self.assertEqual(len(re.findall(r"^\d\. ", page, re.MULTILINE)), 3)
        for what in ("norms, rotated_sat4, float", "encode, two_shot_4, float", "rotated_sat4, float: decode_kernel<false>"):
            self.assertRegex(page, rf"\n\| {what} \| \d+ % \| \d+ % \| [\d.]+ \|")
        self.assertRegex(page, r"\n\| two_shot_4, float: finish_kernel \| 2 us \| \d+ us \| [\d.]+ \|")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--simulated"]:
        SIMULATED = pathlib.Path(sys.argv[2]).resolve()
        del sys.argv[1:3]
    unittest.main()
