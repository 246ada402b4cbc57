"""The broker: a pure state machine (``state``) and the sockets, processes and files around it."""
