"""Logs of other benchmarks (OSU, IMB, STREAM, nccl-tests ...) as tables.

table.py       a table as printed: columns with units, rows, the line of each row
lines.py       the lines of a log without the launcher's marks, and the reading of rows with their checks
reader.py      which importer reads which part of a log
importers/     one file for each benchmark; installed packages add others (entry points `elbowroom.importers`)
"""
