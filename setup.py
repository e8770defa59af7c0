"""Builds the extension modules: one per ``native/kraftlog/_native/*.pyx``, over the C headers in ``native/c``.

``KRAFTLOG_SANITIZE=1`` builds them with AddressSanitizer and UndefinedBehaviorSanitizer.
``KRAFTLOG_BUILT=1`` says that ``build_ext --inplace`` has built them: an editable install would compile them again.
"""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup

NATIVE = Path("native")
# the ones that take longest are compiled first, so that none of them is left alone at the end
LONGEST = ("message", "decoder", "topic_slots", "message_pass")
MODULES = sorted(
    (NATIVE / "kraftlog" / "_native").glob("*.pyx"), key=lambda path: (path.stem not in LONGEST, path.stem)
)
GENERATED = Path("build") / "generated"
SHARED = "kraftlog._native.cython_shared"  # Cython's memoryviews: else each module compiles its own
SHARED_SOURCE = GENERATED / "cython_shared.c"
WRITER = str(NATIVE / "straight_decoders.py")  # of the decoders of messages, from their definitions
SANITIZE = os.environ.get("KRAFTLOG_SANITIZE") == "1"
BUILT = os.environ.get("KRAFTLOG_BUILT") == "1"

GENERATED.mkdir(parents=True, exist_ok=True)
subprocess.run([sys.executable, WRITER, GENERATED / "straight_decoders.h"], check=True)
if not SHARED_SOURCE.exists() or f"Cython {Cython.__version__} " not in SHARED_SOURCE.read_text("utf-8")[:200]:
    options = ["-3", "-X", "freethreading_compatible=True", f"--generate-shared={SHARED_SOURCE}"]
    subprocess.run([sys.executable, "-m", "cython", *options], check=True)

# Generated code is full of conversions, so the warnings that our C must pass are asked for in ci/lint, on the headers.
# -g0: Python's own flags ask for debug information, which was 25 of the 30 MB of all modules
# -O0 -g1: the sanitizers take three times as long with -O1 -g, and see no more. Of UndefinedBehaviorSanitizer the parts
# that compile quickly; ci/native-tests checks the headers with all of it
checks = "address,alignment,shift,bounds,signed-integer-overflow"
sanitized = [
    "-O0",
    "-g1",
    "-DKR_NOT_INLINED",
    f"-fsanitize={checks}",
    "-fno-sanitize-recover=alignment,shift,bounds,signed-integer-overflow",
]
flags = sanitized if SANITIZE else ["-O3", "-g0"]
link = ["-fsanitize=address,undefined"] if SANITIZE else []

extensions = [
    Extension(
        name,
        [str(source)],
        include_dirs=[str(NATIVE / "c"), str(GENERATED)],
        depends=[
            *(str(header) for folder in (NATIVE / "c", GENERATED) for header in sorted(folder.rglob("*.h"))),
            WRITER,
        ],
        extra_compile_args=[*flags, "-std=gnu11", "-fsigned-char", "-Wno-unused-function"],
        extra_link_args=link,
    )
    for name, source in [(SHARED, SHARED_SOURCE), *((f"kraftlog._native.{path.stem}", path) for path in MODULES)]
]

setup(
    options={"build_ext": {"parallel": os.cpu_count()}},
    ext_modules=cythonize(
        [] if BUILT else extensions,
        include_path=[str(NATIVE)],
        build_dir="build/cython",
        nthreads=(os.cpu_count() or 1) if multiprocessing.get_start_method() == "fork" else 0,
        shared_utility_qualified_name=SHARED,
        compiler_directives={
            "language_level": 3,
            "embedsignature": True,
            "freethreading_compatible": True,
            "auto_pickle": False,
        },
    ),
)
