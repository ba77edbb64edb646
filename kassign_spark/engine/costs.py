"""The costs by which the general pass finds the optimum: a flow of counts from classes to places.

An edge (class, member) holds ``assigned`` of the class's partitions, of which ``owned`` cost
nothing and each further one is a move. Every member of a *part* (at first a connected component)
with supply S and n members has ``quota`` = S div n places that must be filled, and one more that
may be. At the start of a part its members hold what they own, up to their quota.

Distances. A partition without a place is *open*; it waits at its class. It may go to any
subscriber (one move, or none while that one holds less of the class than it owns), and there take
a place or push out a partition of another class, which is then open in its turn (a move is saved
if that one was a move). The distance of a class or a member is its cheapest such path to a place:
one that must be filled before all others, then the fewest moves, then the fewest hops.

Pushing. Open partitions step only along edges on a cheapest path. Wherever such a step stops,
there is no cheaper way to the same counts (all reduced costs stay >= 0). So the open
partitions of all classes step at once, and those that find no room wait for new distances. When
none is left, the flow has the least cost, as in any shortest-path method for minimum-cost flow.

Splitting. When no open partition has a path left, a part falls in three: members that still reach
a place that must be filled (``LOW``: their share is below quota), members that reach only a
further place (``MIDDLE``), and members that reach none (``HIGH``: their share is above quota + 1,
if anything stays open). No best assignment moves partitions between these (the canonical partition
of decreasingly minimal allocations of Frank and Murota; "Semi-matchings for bipartite graphs" of
Harvey and others). The second are settled: their loads are quota or quota + 1 in every best
assignment, and their moves are the fewest. The others start again, as parts with quotas of their
own. A class goes with its lowest subscribers; nobody else holds any of it.

Racks. Where they count, an edge to a member in another rack than all of the class's replicas has a
*surcharge*, in its distance from class to member and back. A class is then of partitions that match
the same subscribers. Whether the surcharge weighs more than a move or less decides which of the two
is saved first. Members keep at the start only what costs nothing at all: to keep what has a
surcharge may be no part of the best, so it comes back, if it does, along a cheapest path.

Blocks. Edges are cut into blocks by ranges of classes, and a block does all that concerns a class
(``block``, ``flow``). All that concerns a member is one number per member, which ``program`` adds
up over blocks. So the result is the same for any number of blocks, and as nothing depends on other
components, however these are gathered into tasks. ``task`` holds whole groups inside a task, in one
block; ``rounds`` holds the blocks of groups that are too large for one, in a DataFrame.
"""

MOVE = 1 << 32
"""Distance that one move adds; more than any path has hops."""
MAJOR, MINOR = 1 << 36, 1 << 18
"""Distances of the two costs, moves and racks, where both count: a path passes a member once, so it
has fewer than 2 ** 18 hops and minor costs."""
MUST_FILL = 1 << 56
"""Distance that a place that must be filled takes off; more than any path has moves."""
UNREACHABLE = 1 << 60

LOW, MIDDLE, HIGH = 0, 1, 2


def rack_costs(racks_before_moves: bool) -> tuple[int, int]:
    """Return the costs of a partition without a replica in its member's rack, and of a move."""
    return (MAJOR, MINOR) if racks_before_moves else (MINOR, MAJOR)
