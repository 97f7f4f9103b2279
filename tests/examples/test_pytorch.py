#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of examples/pytorch with processes of this machine, over Gloo.

    tests/examples/test_pytorch.py [TEST...]

TERSUM_C_LIBRARY names the shared library, where the package is not installed. Ends with 77, skipped, without torch.
"""

import importlib.metadata
import importlib.util
import os
import pathlib
import re
import runpy
import shutil
import socket
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import zipfile

if importlib.util.find_spec("torch") is None:
    print(f"skipped: {sys.executable} has no torch (Debian's python3-torch)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "examples/pytorch"
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
if "TERSUM_C_LIBRARY" in os.environ:
    ENVIRONMENT["PYTHONPATH"] = str(PACKAGE)
    sys.path.insert(0, str(PACKAGE))


class PyTorch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def wait_for(self, running):
        """What the processes print; none is left behind."""
        try:
            return [process.communicate(timeout=240)[0] for process in running]
        finally:
            for process in running:
                process.kill()

    def ranks(self, world, tasks, expected=None):
        """Runs tasks of pytorch_rank.py on all ranks; what they printed."""
        script = pathlib.Path(__file__).with_name("pytorch_rank.py")
        running = [subprocess.Popen([sys.executable, str(script), str(rank), str(world), self.folder, *tasks],
                                    env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                   for rank in range(world)]
        printed = self.wait_for(running)
        codes = [process.returncode for process in running]
        self.assertEqual(codes, expected or [0] * world, "\n".join(printed))
        return printed

    def launch(self, *command):
        """Two ranks, as torchrun starts them, which Debian's torch 1.13 cannot under Python 3.11; what they print."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        running = [subprocess.Popen([sys.executable, *map(str, command)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    env=dict(ENVIRONMENT, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", GROUP_RANK="0",
                                             LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                                             TORCHELASTIC_RUN_ID="test")) for rank in range(2)]
        printed = self.wait_for(running)
        self.assertEqual([process.returncode for process in running], [0, 0], "\n".join(printed))
        return printed

    def test_libraries_that_make_ddp(self):
        """Lightning, whose strategy takes a hook before there is a group, or makes one; and Accelerate."""
        tasks = {"lightning": "lightning", "configure_ddp": "lightning", "accelerate": "accelerate"}
        there = [task for task, library in tasks.items() if importlib.util.find_spec(library)]
        for task in there:
            with self.subTest(task):
                for text in self.launch(pathlib.Path(__file__).with_name("pytorch_trainers.py"), task):
                    self.assertRegex(text, r"trained with 4\.\d+ bits")
        if not there:
            self.skipTest("there is neither Lightning nor Accelerate")

    def test_two_ranks(self):
        """Trainings, then such as go on with their checkpoints in other processes, of which at last one dies."""
        world, codecs, resumed = 2, ("allocated_sat_4_ef", "allocated_2", "topk_b2_ef"), ("rotated_sat4_ef", "powersgd_r4")
        tasks = ["presets", "shards", *[f"training:{codec}" for codec in ("fp32", *codecs)], "accumulation", "not_finite", "rules",
                 "names", "early", "early_errors", "several_models", "carried", "advice", "fp32_accumulation", "unused", "late_group", "momenta:fp32", "momenta:two_shot_1_ef"]
        if int(importlib.metadata.version("torch").split(".")[0]) >= 2:
            # Gloo of torch 1 cannot broadcast bfloat16, which DDP does before the first step, and there is no FSDP2.
            tasks += ["bfloat16", "compiled", "fsdp2"]
        self.ranks(world, tasks + [f"resume:{codec}" for codec in resumed])
        printed = self.ranks(world, [f"resumed:{codec}" for codec in resumed] + ["killed"],
                             expected=[3] * (world - 1) + [9])
        for rank in range(world - 1):
            self.assertIn("the exchange of gradients failed", printed[rank])
            self.assertNotIn("Unable to cast", printed[rank])

    def test_four_ranks(self):
        """What depends on the number of ranks, or needs two groups of them."""
        self.ranks(4, ["shards", "training:rotated_sat4", "training:topkc_b2_ef", "resume:two_shot_4_ef", "not_finite", "carried",
                       "several_models", "fp32_accumulation", "two_levels", "subset"])

    def test_the_ten_lines(self):
        """The program of the README, as it stands there."""
        text = (PACKAGE / "README.md").read_text(encoding="utf-8")
        program = re.search(r"```python\n(# train.py.*?)```", text, re.DOTALL).group(1)
        added = [line for line in program.splitlines() if "tersum" in line]
        self.assertLessEqual(len(added), 10)
        script = pathlib.Path(self.folder) / "train.py"
        script.write_text(program, encoding="utf-8")
        for text in self.launch(script):
            bits = float(re.search(r"^([0-9.]+) bits per coordinate$", text, re.MULTILINE).group(1))
            self.assertTrue(2 < bits < 6, text)


@unittest.skipUnless("TERSUM_C_LIBRARY" in os.environ and importlib.util.find_spec("wheel"), "needs a library, and Python's wheel")
class Package(unittest.TestCase):
    """As pip installs it, with what is here to build it by, out of a clone with what it takes of the repository."""

    @classmethod
    def setUpClass(cls):
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
            raise unittest.SkipTest("needs Python's pip")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.clone, self.source = self.folder / "tersum", self.folder / "tersum/examples/pytorch"  # beside programs: not to be imported
        shutil.copytree(PACKAGE, self.source, ignore=shutil.ignore_patterns("*.so", "build", "*.egg-info", "__pycache__"))
        (self.clone / "include").symlink_to(ROOT / "include")
        self.git("init", "--quiet")

    def git(self, *command):
        subprocess.run(["git", "-C", self.clone, "-c", "user.name=test", "-c", "user.email=test@example.org", *command], check=True)

    def pip(self, *command):
        subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, command)], check=True)

    def installed(self, *what):
        """Installs it in an environment of its own; where tersum is imported from there, and its version."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", self.folder / "venv"], check=True)
        python = self.folder / "venv/bin/python"
        self.pip("--python", python, "install", "--no-build-isolation", "--no-deps", "--ignore-installed", *what)
        environment = {k: v for k, v in os.environ.items() if k not in ("TERSUM_C_LIBRARY", "PYTHONPATH")}
        file, version = subprocess.run([python, "-c", "import tersum; print(tersum.__file__, tersum.version())"], cwd=self.folder,
                                       check=True, capture_output=True, text=True, env=environment).stdout.split()
        return pathlib.Path(file).parent, version

    def test_an_editable_installation_can_be_imported(self):
        self.assertEqual(self.installed("-e", self.source)[0], self.source / "tersum")

    def test_the_address_of_a_repository(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "all")
        what, = re.findall(r"'(.*git\+URL.*)'", (PACKAGE / "README.md").read_text(encoding="utf-8"))
        self.assertIn(self.folder / "venv", self.installed(what.replace("URL", f"file://localhost{self.clone}"))[0].parents)

    def test_the_wheel(self):
        """Of no version of Python; with licence, readme, version, URL, types and the library."""
        self.git("config", "remote.origin.url", "https://someone:secret@example.org/tersum.git")
        self.pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", self.folder, self.source)
        wheel, = self.folder.glob("*.whl")
        version = self.installed(wheel)[1]
        self.assertRegex(wheel.name, rf"^tersum-{re.escape(version)}-py3-none-linux_\w+\.whl$")
        with zipfile.ZipFile(wheel) as file:
            names = file.namelist()
            text = file.read(f"tersum-{version}.dist-info/METADATA").decode()
        self.assertLessEqual({"tersum/py.typed", "tersum/libtersum_c.so", "tersum_torch/py.typed"}, set(names))
        self.assertTrue(any(name.endswith("/LICENSE") for name in names), names)
        for line in ("License: Apache-2.0", "Requires-Dist: numpy", f"Version: {version}", "# tersum for PyTorch, and for numpy",
                     "Project-URL: Source, https://example.org/tersum.git"):
            self.assertIn(f"\n{line}\n", text)

    def test_the_url_tells_no_secret(self):
        """Nor where a clone of a folder lies."""
        for url, said in (("https://example.org/a/b", "https://example.org/a/b"), ("http://token@example.org:80/b", "http://example.org:80/b"),
                          ("https://me:p@ss@example.org/b?token=secret", "https://example.org/b"),
                          ("ssh://git@example.org:22/b.git", "ssh://example.org:22/b.git"), ("git@example.org:a/b", "ssh://example.org/a/b"),
                          ("https://me:pa/ss@example.org/b", None), ("/home/me/tersum", None), ("../tersum", None),
                          ("file:///home/me/tersum", None), ("C:/tersum", None), ("", None)):
            self.git("config", "remote.origin.url", url)
            with self.subTest(url), unittest.mock.patch("setuptools.setup") as setup:
                runpy.run_path(str(self.source / "setup.py"))
                self.assertEqual(setup.call_args.kwargs["project_urls"], {"Source": said} if said else {})


class Devices(unittest.TestCase):
    """What the package makes of torch's devices and streams, as far as it shows without a GPU."""

    def test_the_default_stream_has_a_name(self):
        """tersum_c.h takes NULL for no stream; torch's default stream has the handle 0, and cudaStreamLegacy is 1."""
        from tersum_torch import exchange
        self.assertEqual(exchange.stream_argument(types.SimpleNamespace(cuda_stream=0)), 1)
        self.assertEqual(exchange.stream_argument(types.SimpleNamespace(cuda_stream=0x7f00)), 0x7f00)

    def test_devices_are_those_that_tensors_name(self):
        import torch
        from tersum_torch import exchange
        self.assertEqual(exchange.with_index(torch.device("cpu:0")), torch.empty(0).device)
        self.assertEqual(exchange.with_index(torch.device("cuda:3")).index, 3)
        with unittest.mock.patch("torch.cuda.current_device", return_value=2):
            self.assertEqual(exchange.with_index(torch.device("cuda")), torch.device("cuda:2"))


class Configuration(unittest.TestCase):
    def of(self, given):
        import tersum_torch
        return tersum_torch.Configuration.of(given)

    def test_last_rule_that_matches_decides(self):
        given = {"version": 1, "default": "rotated_sat4",
                 "rules": [{"pattern": "*.weight", "codec": "two_shot_4", "weight": 2}, {"pattern": "a.*", "codec": "none"}]}
        c = self.of(given)
        self.assertEqual(c.rule_for("b.bias").codec, "rotated_sat4")
        self.assertEqual((c.rule_for("b.weight").codec, c.rule_for("b.weight").weight), ("two_shot_4", 2))
        self.assertEqual((c.rule_for("a.weight").codec, c.rule_for("a.weight").weight), ("none", 2))
        self.assertEqual(c.rule_for(None).codec, "rotated_sat4")
        c.check_names(["a.weight", "b.bias"])
        with self.assertRaisesRegex(ValueError, r"'a\.\*' matches no parameter; the model has b.weight"):
            c.check_names(["b.weight"])

    def test_files_are_read(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"version": 1, "default": "allocated_4", "rules": [{"pattern": "*.bias", "codec": "none"}]}')
            file.flush()
            self.assertEqual(self.of(file.name).rule_for("x.bias").codec, "none")

    def test_faults_are_named(self):
        for given, named in (("no_such_codec", "no_such_codec"), ({"default": "fp16"}, "version"),
                             ({"version": 1}, "default"), ({"version": 2, "default": "fp16"}, "2"),
                             ({"version": 1, "default": "fp61"}, "fp61"),
                             ({"version": 1, "default": "fp16", "rules": [{"patern": "*"}]}, "patern")):
            with self.subTest(given=given), self.assertRaisesRegex(ValueError, named):
                self.of(given)


if __name__ == "__main__":
    unittest.main()
