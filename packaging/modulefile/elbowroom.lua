-- Environment module (Lua, Lmod) for an elbowroom installed into a virtual environment: set `root` and, where the
-- site's MPI is to be used instead of the embedded one, add depends_on() of its module.

local root = "/opt/elbowroom/0.1.0"

help([[elbowroom measures how much computation and communication slow each other down.
Start with: elbowroom doctor; elbowroom run quick]])

whatis("Name: elbowroom")
whatis("Version: 0.1.0")
whatis("Description: interference of computation and communication")
conflict("elbowroom")
prepend_path("PATH", pathJoin(root, "bin"))
