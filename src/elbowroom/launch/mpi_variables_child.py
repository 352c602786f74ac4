"""Prints the control variables of an MPI library (its path is the argument) and their values as JSON.

A program of its own: it has nothing but ctypes. Handles are pointers in Open MPI and numbers in MPICH; both
fit in a pointer. MPI_INT and the like are told apart by the number of values and by what is read.
"""

import ctypes
import json
import sys

_LENGTH = 1024


def _names(library: ctypes.CDLL) -> list[str]:
    count = ctypes.c_int()
    library.MPI_T_cvar_get_num(ctypes.byref(count))
    names = []
    for index in range(count.value):
        text, length = ctypes.create_string_buffer(_LENGTH), ctypes.c_int(_LENGTH)
        numbers = [ctypes.c_int() for _ in range(3)]
        kind, enumeration = ctypes.c_void_p(), ctypes.c_void_p()
        failed = library.MPI_T_cvar_get_info(
            index,
            text,
            ctypes.byref(length),
            ctypes.byref(numbers[0]),
            ctypes.byref(kind),
            ctypes.byref(enumeration),
            None,
            None,
            ctypes.byref(numbers[1]),
            ctypes.byref(numbers[2]),
        )
        names.append("" if failed else text.value.decode(errors="replace"))
    return names


def _value(library: ctypes.CDLL, index: int) -> str:
    """The value of a variable: text if it has several characters, else a number."""
    handle, count = ctypes.c_void_p(), ctypes.c_int()
    if library.MPI_T_cvar_handle_alloc(index, None, ctypes.byref(handle), ctypes.byref(count)):
        return ""
    room = ctypes.create_string_buffer(max(_LENGTH, 8 * max(count.value, 1) + 8))
    if library.MPI_T_cvar_read(handle, room):
        return ""
    if count.value > 1:
        return room.value.decode(errors="replace")
    return str(int.from_bytes(room.raw[:4], sys.byteorder, signed=True))


def main() -> None:
    """Prints a JSON object: value by name."""
    library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
    provided = ctypes.c_int()
    if library.MPI_T_init_thread(0, ctypes.byref(provided)):
        sys.exit(1)
    print(json.dumps({name: _value(library, index) for index, name in enumerate(_names(library)) if name}))


if __name__ == "__main__":
    main()
