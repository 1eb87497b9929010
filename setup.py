"""Builds the native extensions; everything else about the package stands in setup.cfg."""

from Cython.Build import cythonize
from setuptools import Extension, setup

NATIVE = (
    ("capture", "_run"),
    ("net", "_inflow"),
    ("records", "_block"),
    ("records", "_kernel"),
    ("records", "_kernel_write"),
    ("records", "_memory"),
)
KERNELS = [
    Extension(
        f"pyspark_kafkaproto.{room}.{name}",
        [f"pyspark_kafkaproto/{room}/{name}.pyx"],
        extra_compile_args=["-O3"],
    )
    for room, name in NATIVE
]
EXTENSIONS = cythonize(KERNELS, language_level=3)
for extension in EXTENSIONS:
    # Without a C compiler the install goes on: plain Python takes over, and where it is much slower
    # (`records`) it says so. Set here and not above: cythonize makes new extensions and drops it.
    extension.optional = True

setup(ext_modules=EXTENSIONS)
