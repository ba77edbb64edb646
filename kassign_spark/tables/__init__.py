"""Tables outside: snapshots and plans as folders and files, whole or not at all."""
