"""Builds the native extensions; everything else about the package stands in setup.cfg."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError

NATIVE = sorted(Path("pyspark_kafkaproto").glob("*/*.pyx"))


class Build(build_ext):
    """Leaves nothing of an older build where a part cannot be built: others would not fit it."""

    def build_extension(self, ext: Extension) -> None:
        """Where it fails, a folder of builds (`build`) may still have an older one."""
        try:
            self.build_with_or_without_folding(ext)
        except Exception:
            Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
            raise

    def build_with_or_without_folding(self, ext: Extension) -> None:
        """Some compilers have not all of it (`_crc32c.pxd`): they are to build all else."""
        try:
            super().build_extension(ext)
        except CCompilerError:
            ext.extra_compile_args = [*ext.extra_compile_args, "-DNO_FOLDING"]
            super().build_extension(ext)

    def copy_extensions_to_source(self) -> None:
        """What was built, and nothing else, is beside the sources then."""
        for ext in self.extensions:
            if not Path(self.build_lib, self.get_ext_filename(ext.name)).exists():
                Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
        super().copy_extensions_to_source()


KERNELS = [
    Extension(".".join(source.with_suffix("").parts), [str(source)], extra_compile_args=["-O3"])
    for source in NATIVE
]
EXTENSIONS = cythonize(KERNELS, language_level=3)
for extension in EXTENSIONS:
    # Without a C compiler the install goes on: plain Python takes over, and where it is much slower
    # (`records`) it says so. Set here and not above: cythonize makes new extensions and drops it.
    extension.optional = True

setup(ext_modules=EXTENSIONS, cmdclass={"build_ext": Build})
