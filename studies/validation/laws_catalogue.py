"""All laws, in the order of tables."""

from studies.validation import laws_connections, laws_queues, laws_windows
from studies.validation.laws import Law

LAWS: tuple[Law, ...] = (*laws_connections.LAWS, *laws_windows.LAWS, *laws_queues.LAWS)
BY_NAME = {law.name: law for law in LAWS}
