"""What surrounds an assignor: coordinators, producers, clients' settings, delivery to members."""
