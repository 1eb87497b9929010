"""Builds the one native extension; everything else about the package stands in setup.cfg."""

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNEL = Extension(
    "pyspark_kafkaproto.records._kernel",
    ["pyspark_kafkaproto/records/_kernel.pyx"],
    extra_compile_args=["-O3"],
)
EXTENSIONS = cythonize([KERNEL], language_level=3)
for extension in EXTENSIONS:
    # Without a C compiler the install goes on: records/reference.py takes over and says so.
    # Said here and not above, because cythonize makes new extensions and drops it.
    extension.optional = True

setup(ext_modules=EXTENSIONS)
