-- Environment module (Lua, Lmod) for an elbowroom installed into a virtual environment: set `root` and, where the
-- site's MPI is to be used instead of the embedded one, add depends_on() of its module. Installed as
-- modulefiles/elbowroom/VERSION.lua, it takes the version from its own name.

local root = pathJoin("/opt/elbowroom", myModuleVersion())

help([[elbowroom measures how much computation and communication slow each other down.
Start with: elbowroom doctor; elbowroom run quick]])

whatis("Name: elbowroom")
whatis("Version: " .. myModuleVersion())
whatis("Description: interference of computation and communication")
conflict("elbowroom")
prepend_path("PATH", pathJoin(root, "bin"))
