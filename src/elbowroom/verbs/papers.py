"""`elbowroom papers`: the items of the papers, with the command that shows each and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.options import completion
from elbowroom.quantities import plural
from elbowroom.verbs.declaration import Verb, argument
from elbowroom.verbs.study import study_names

if TYPE_CHECKING:
    from elbowroom.studies.items import PaperItems

STYLES = {"done": "green", "part": "yellow", "refused": ""}


class ListItems(Verb):
    """List figures, tables and conclusions of the papers, and the command that shows each.

    done: the command shows it where the machine has what it needs. part: something is missing, and the reason
    says what. refused: it is not shown, for the reason given.
    """

    name = "papers"

    document_name: str | None = argument(None, metavar="[DOCUMENT]", shell_complete=completion(study_names))

    def do(self) -> PaperItems:
        """The items of a document, or of all."""
        from elbowroom.studies.items import paper_items

        return paper_items(self.document_name)

    def print(self, result: PaperItems) -> None:
        """Each item with its command, and with the reason where it is not done."""
        for item in result.items:
            head = f"{item.document} {item.section}, {item.status}: {item.item}"
            print_wrapped(head, style=STYLES[item.status])
            for line in filter(None, (item.command, item.reason)):
                print_wrapped(line, indent="  ")

    def answer(self, result: PaperItems) -> Answer:
        """How many items there are of each status."""
        counts = ", ".join(f"{count} {status}" for status, count in result.counts.items())
        partial = next((item for item in result.items if item.status == "part"), None)
        why = "Each is done, or refused with its reason."
        if partial is not None:
            why = f"In part: {partial.document}, section {partial.section}. {partial.reason}."
        return Answer(
            f"Of {plural(len(result.items), 'item')}: {counts}.",
            why,
            command_line("study", self.document_name or "denis2021", "--dry-run"),
        )
