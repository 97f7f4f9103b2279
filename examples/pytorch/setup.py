# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""Compiles the shared library of the repository around this folder, and installs it beside the Python files."""

import os
import pathlib
import re
import shutil
import subprocess
import urllib.parse

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

repository = pathlib.Path(__file__).resolve().parents[2]


def version():
    header = (repository / "include/tersum/version.hpp").read_text(encoding="utf-8")
    return ".".join(re.search(rf"#define TERSUM_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def urls():
    """Where the clone came from, if that is a public address: without who fetched it, and by which password."""
    if not shutil.which("git") or not (repository / ".git").exists():
        return {}
    origin = subprocess.run(["git", "-C", repository, "config", "--local", "remote.origin.url"], capture_output=True, text=True,
                            check=False).stdout.strip()
    url = urllib.parse.urlsplit(re.sub(r"^[\w.-]+@([\w.-]+):", r"ssh://\1/", origin))
    if url.scheme not in ("https", "http", "ssh") or not url.hostname or "@" in url.path:
        return {}
    return {"Source": f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"}


def compile_library():
    """The library of TERSUM_C_LIBRARY if there is one, otherwise a new one: with CUDA if TERSUM_CUDA is ON."""
    if os.environ.get("TERSUM_C_LIBRARY"):
        return pathlib.Path(os.environ["TERSUM_C_LIBRARY"])
    if not (repository / "include" / "tersum").is_dir():
        raise SystemExit("tersum is installed out of tersum's repository: pip install ./examples/pytorch")
    if not os.environ.get("CXX") and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        raise SystemExit("tersum is compiled, and there is no C++ compiler: install one, such as Debian's g++")
    build = repository / "build" / "pytorch"
    # pip brings CMake and Ninja along, in a folder that is gone afterwards.
    configure = ["cmake", "-S", repository, "-B", build, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={shutil.which('ninja')}",
                 "-DCMAKE_BUILD_TYPE=Release", "-DTERSUM_TRANSPORTS=OFF"]
    configure.append(f"-DTERSUM_CUDA={os.environ.get('TERSUM_CUDA', 'OFF')}")
    # Two units of C++, one for each core of a small machine: headers are read twice, and not six times.
    configure += ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=3"]
    for part in ("TESTS", "BENCH"):
        configure.append(f"-DTERSUM_BUILD_{part}=OFF")
    if shutil.which("ccache"):
        configure += [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("CXX", "CUDA")]
    subprocess.run(configure, check=True)
    jobs = str(len(os.sched_getaffinity(0)))
    subprocess.run(["cmake", "--build", build, "--target", "tersum_c", "--parallel", jobs], check=True)
    return build / "lib" / "libtersum_c.so"


class build_with_library(build_py):
    def run(self):
        super().run()
        # An editable installation imports the Python files from here.
        here = pathlib.Path(__file__).resolve().parent
        target = here if getattr(self, "editable_mode", False) else pathlib.Path(self.build_lib)
        shutil.copyfile(compile_library().resolve(), target / "tersum" / "libtersum_c.so")


class PlatformDistribution(Distribution):
    def has_ext_modules(self):
        return True


class any_python(bdist_wheel):
    """The library is of this platform, and of no version of Python."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(version=version(), project_urls=urls(), cmdclass={"build_py": build_with_library, "bdist_wheel": any_python},
      distclass=PlatformDistribution)
