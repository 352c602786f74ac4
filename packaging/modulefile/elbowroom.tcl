#%Module1.0
# Environment module (Tcl) for an elbowroom installed into a virtual environment: set `root` and, where the site's MPI
# is to be used instead of the embedded one, load its module here. Installed as modulefiles/elbowroom/VERSION, it takes
# the version from its own name.

set version [file tail [module-info name]]
set root /opt/elbowroom/$version

proc ModulesHelp { } {
    puts stderr "elbowroom measures how much computation and communication slow each other down"
    puts stderr "Start with: elbowroom doctor; elbowroom run quick"
}

module-whatis "elbowroom $version: interference of computation and communication"
conflict elbowroom
prepend-path PATH $root/bin
