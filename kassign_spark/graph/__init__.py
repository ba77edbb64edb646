"""Who can take which partition, as a graph; and what it says about balance."""
