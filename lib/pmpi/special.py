"""Which functions of MPI are told in detail, and how: the class of special.hpp, and which arguments it gets.

Arguments are counted from 1. Before the call and, behind the bar, after it:

    4         the value (of the type that the header says)
    >7        what was written to where argument 7 points
    =4        the address itself
    @8        requests of an array (their number comes before)
    %3        the written index, from 0 in both languages
    $5 $5:1   the status; statuses, as many as argument 1 says
    "2        the text of argument 2
    'text'    as it is
    choose:1:2:5, choose_type, sum:2:peers:9, mean, typed, at_own_rank, times:2:7, next_to, next_to_typed
                    parts of collective operations, below
    root?7?2?5      where argument 7 is MPI_ROOT the first, else the second
    place?1?2?5     where argument 1 is MPI_IN_PLACE the first, else the second
"""

from __future__ import annotations

from typing import NamedTuple


class Special(NamedTuple):
    """`make`: the class; `before`, `after`: its arguments; `done`: the member called after the call;
    `always`: also where nothing is recorded.
    """

    make: str
    before: str
    after: str = ""
    done: str = "done"
    always: bool = False


def _sends() -> dict[str, Special]:
    found = {}
    for mode in ("Send", "Bsend", "Ssend", "Rsend"):
        found[mode] = Special("Sending", "2 3 4 5 6")
        found[f"I{mode.lower()}"] = Special("Sending", "2 3 4 5 6", ">7")
        found[f"{mode}_init"] = Special("SendMaking", "2 3 4 5 6", ">7")
    return found


_POINT_TO_POINT = {
    **_sends(),
    "Recv": Special("Receiving", "2 3 4 5 6", "$7"),
    "Irecv": Special("ReceivePosting", "2 3 4 5 6", ">7"),
    "Recv_init": Special("ReceiveMaking", "2 3 4 5 6", ">7"),
    "Sendrecv": Special("SendReceiving", "2 3 4 5 7 8 9 10 11", "$12"),
    "Sendrecv_replace": Special("SendReceiving", "2 3 4 5 2 3 6 7 8", "$9"),
    "Isendrecv": Special("SendReceiving", "2 3 4 5 7 8 9 10 11", ">12"),
    "Isendrecv_replace": Special("SendReceiving", "2 3 4 5 2 3 6 7 8", ">9"),
    "Psend_init": Special("PartsMaking", "'true' 2 3 4 5 6 7", ">9"),
    "Precv_init": Special("PartsMaking", "'false' 2 3 4 5 6 7", ">9"),
    "Mprobe": Special("Probing", "1 2 3", ">4 $5"),
    "Improbe": Special("Probing", "1 2 3", ">4 >5 $6"),
    "Mrecv": Special("MatchedReceiving", ">4", "$5"),
    "Imrecv": Special("MatchedReceiving", ">4", ">5"),
}

_COMPLETIONS = {
    "Wait": Special("Completing", "'1' @1", "'1' $2", "all"),
    "Test": Special("Completing", "'1' @1", ">2 $3", "all"),
    "Waitall": Special("Completing", "1 @2", "'1' $3:1", "all"),
    "Testall": Special("Completing", "1 @2", ">3 $4:1", "all"),
    "Waitany": Special("Completing", "1 @2", "'1' %3 $4", "any"),
    "Testany": Special("Completing", "1 @2", ">4 %3 $5", "any"),
    "Waitsome": Special("Completing", "1 @2", ">3 =4 'kFirstIndex' $5:1", "some"),
    "Testsome": Special("Completing", "1 @2", ">3 =4 'kFirstIndex' $5:1", "some"),
    "Start": Special("Starting", "'1' @1"),
    "Startall": Special("Starting", "1 @2"),
    "Request_free": Special("Freeing", ">1"),
}


def _part(buffer: int, own: tuple[int, int], other: tuple[int, int]) -> str:
    """Count and type of the own part; where the buffer is MPI_IN_PLACE those of the other one."""
    return f"choose:{buffer}:{own[0]}:{other[0]} choose_type:{buffer}:{own[1]}:{other[1]}"


_NONE = "'kNoRoot'"
_BYTES = "'MPI_BYTE'"

_COLLECTIVES = {
    "Bcast": f"2 3 root?4?{_NONE}?4 5",
    "Gather": f"{_part(1, (2, 3), (5, 6))} 7 8",
    "Gatherv": "place?1?'0'?2 3 8 9",
    "Scatter": f"root?7?times:2:peers:8?choose:4:5:2 root?7?3?choose_type:4:6:3 root?7?{_NONE}?7 8",
    "Scatterv": (
        f"root?8?sum:2:peers:9?place?5?mean:2:peers:9?6 root?8?4?choose_type:5:7:4 root?8?{_NONE}?8 9"
    ),
    "Allgather": f"{_part(1, (2, 3), (5, 6))} {_NONE} 7",
    "Allgatherv": f"place?1?at_own_rank:5:8?2 choose_type:1:3:7 {_NONE} 8",
    "Alltoall": f"{_part(1, (2, 3), (5, 6))} {_NONE} 7",
    "Alltoallv": f"place?1?sum:6:peers:9?sum:2:peers:9 choose_type:1:4:8 {_NONE} 9",
    "Alltoallw": f"place?1?typed:6:8:peers:9?typed:2:4:peers:9 {_BYTES} {_NONE} 9",
    "Reduce": "3 4 6 7",
    "Allreduce": f"3 4 {_NONE} 6",
    "Scan": f"3 4 {_NONE} 6",
    "Exscan": f"3 4 {_NONE} 6",
    "Reduce_scatter": f"sum:3:members:6 4 {_NONE} 6",
    "Reduce_scatter_block": f"3 4 {_NONE} 6",
    "Neighbor_allgather": f"times:2:neighbours:7 3 {_NONE} 7",
    "Neighbor_allgatherv": f"times:2:neighbours:8 3 {_NONE} 8",
    "Neighbor_alltoall": f"times:2:neighbours:7 3 {_NONE} 7",
    "Neighbor_alltoallv": f"next_to:2:9 4 {_NONE} 9",
    "Neighbor_alltoallw": f"next_to_typed:2:4:9 {_BYTES} {_NONE} 9",
}
"""Count, type, root and communicator of what a process contributes, or gets where only the root contributes.
Of operations with neighbours: what it sends to all of them.
"""


def _collectives() -> dict[str, Special]:
    found = {}
    for name, before in {"Barrier": f"'0' 'MPI_DATATYPE_NULL' {_NONE} 1", **_COLLECTIVES}.items():
        communicator = int(before.split()[-1])  # the last argument but for an info and the request
        found[name] = Special("Collective", before)
        found[f"I{name.lower()}"] = Special("Collective", before, f">{communicator + 1}", "posted")
        found[f"{name}_init"] = Special("Collective", before, f">{communicator + 2}", "made")
    return found | {"Barrier": Special("Barrier", "1")}


_MEMORY = {
    "Put": "6 7 4 8",
    "Get": "6 7 4 8",
    "Accumulate": "6 7 4 9",
    "Get_accumulate": "9 10 7 12",
    "Fetch_and_op": "'1' 3 4 7",
    "Compare_and_swap": "'1' 4 5 7",
}

_REQUESTED = {
    "Rput": ("6 7 4 8", ">9"),
    "Rget": ("6 7 4 8", ">9"),
    "Raccumulate": ("6 7 4 9", ">10"),
    "Rget_accumulate": ("9 10 7 12", ">13"),
}

_OTHERS = {
    "Finalize": Special("Finalising", ""),
    "Session_init": Special("SessionOpening", "", ">3", always=True),
    "Session_finalize": Special("SessionClosing", ">1", always=True),
    "Comm_create_from_group": Special("FromGroupMaking", '1 "2', ">5", always=True),
    "Intercomm_create_from_groups": Special("FromGroupsMaking", '"5', ">8", always=True),
    "Win_create": Special("WindowMaking", "5", ">6"),
    "Win_allocate": Special("WindowMaking", "4", ">6"),
    "Win_allocate_shared": Special("WindowMaking", "4", ">6"),
    "Win_create_dynamic": Special("WindowMaking", "2", ">3"),
    "Win_free": Special("WindowFreeing", ">1"),
    "Comm_dup": Special("CommunicatorMaking", "1", ">2"),
    "Comm_dup_with_info": Special("CommunicatorMaking", "1", ">3"),
    "Comm_idup": Special("DuplicateMaking", "1", "=2 >3"),
    "Comm_idup_with_info": Special("DuplicateMaking", "1", "=3 >4"),
    "Comm_split": Special("CommunicatorMaking", "1", ">4"),
    "Comm_split_type": Special("CommunicatorMaking", "1", ">5"),
    "Comm_create": Special("CommunicatorMaking", "1", ">3"),
    "Comm_create_group": Special("GroupMaking", "1 2 3", ">4"),
    "Cart_create": Special("CommunicatorMaking", "1", ">6"),
    "Cart_sub": Special("CommunicatorMaking", "1", ">3"),
    "Graph_create": Special("CommunicatorMaking", "1", ">6"),
    "Dist_graph_create": Special("CommunicatorMaking", "1", ">9"),
    "Dist_graph_create_adjacent": Special("CommunicatorMaking", "1", ">10"),
    "Intercomm_merge": Special("CommunicatorMaking", "1", ">3"),
    "Intercomm_create": Special("InterMaking", "5", ">6"),
    "Comm_spawn": Special("ForeignMaking", "", ">7"),
    "Comm_spawn_multiple": Special("ForeignMaking", "", ">8"),
    "Comm_accept": Special("ForeignMaking", "", ">5"),
    "Comm_connect": Special("ForeignMaking", "", ">5"),
    "Comm_join": Special("ForeignMaking", "", ">2"),
    "Comm_get_parent": Special("ForeignMaking", "", ">1"),
    "Comm_free": Special("CommunicatorFreeing", ">1"),
    "Comm_disconnect": Special("CommunicatorFreeing", ">1"),
}

_OTHER_REQUESTS = {
    "Grequest_start": ">5",
    **{f"File_{way}{end}": ">5" for way in ("iread", "iwrite") for end in ("", "_all", "_shared")},
    **{f"File_{way}_at{end}": ">6" for way in ("iread", "iwrite") for end in ("", "_all")},
}
"""Requests of no communication, which have the handles of others that are complete."""

SPECIAL: dict[str, Special] = {
    **_POINT_TO_POINT,
    **_COMPLETIONS,
    **_collectives(),
    **{name: Special("Accessing", before) for name, before in _MEMORY.items()},
    **{name: Special("Accessing", *words) for name, words in _REQUESTED.items()},
    **{name: Special("OtherRequestMaking", "", after) for name, after in _OTHER_REQUESTS.items()},
    **_OTHERS,
}
"""By the name without MPI_ and without _c."""

KINDS = {
    **dict.fromkeys(_POINT_TO_POINT, "message"),
    **dict.fromkeys(_collectives(), "message"),
    **dict.fromkeys((*_MEMORY, *_REQUESTED), "message"),
    **dict.fromkeys(_COMPLETIONS, "requests"),
}
"""What a call's fields mean; nothing where it is not here."""


def role(name: str) -> str:
    """What a call does, or what it makes or posts does: send, receive, exchange, collective, barrier, access,
    completion, other.
    """
    special = SPECIAL.get(name)
    if special is None:
        return "other"
    if name in ("Barrier", "Ibarrier", "Barrier_init"):
        return "barrier"
    if special.make == "PartsMaking":
        return "send" if name == "Psend_init" else "receive"
    return _ROLES.get(special.make, "other")


def blocking(name: str) -> bool:
    """Whether a call is over when it returns: it posts and makes no operation."""
    base = name.removesuffix("_c")
    return not (base.endswith("_init") or base in _REQUESTED or (base[0] == "I" and role(base) != "other"))


_ROLES = {
    "Sending": "send",
    "SendMaking": "send",
    "Receiving": "receive",
    "ReceivePosting": "receive",
    "ReceiveMaking": "receive",
    "MatchedReceiving": "receive",
    "SendReceiving": "exchange",
    "Collective": "collective",
    "Accessing": "access",
    "Completing": "completion",
}

PASSED: tuple[tuple[str, str], ...] = (
    (r"MPI_W(time|tick)", "reads a clock in some ns"),
    (r"MPI_Aint_(add|diff)", "arithmetic"),
    (r"MPIX?_\w+_(f2c|c2f|f082c|c2f08|f2f08|f082f)", "changes how a handle is written"),
    (r"MPI_T_\w+", "the interface for tools, which may be used before MPI_Init"),
    (r"MPI_(Initialized|Finalized|Get_version|Get_library_version)", "may be called when MPI does not run"),
    (
        r"MPI_(Status_set_\w+|Get_count|Get_elements|Get_elements_x|Test_cancelled)(_c)?",
        "looks into a status",
    ),
    (r"MPI_(Get_address|Address|Error_class|Error_string)", "looks something up"),
    (r"MPI_Grequest_complete", "may be called by any thread, of other runtimes"),
    (r"MPIX_Grequest_\w+|MPIX_Query_\w+|MPIX_GPU_\w+", "an extension that is not a communication"),
)
"""Functions that are not shimmed, and why; the first pattern that fits."""
