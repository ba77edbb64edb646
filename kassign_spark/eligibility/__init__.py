"""Who can take which partition: from members and topics to one row a group."""
