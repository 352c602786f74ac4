"""One overlap of a computation with a message or a collective: times, what is hidden, what is lost, why."""
