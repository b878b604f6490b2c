"""Which connection makes room for the next."""

from bigfleet_base.http.connections import ConnectionTable


class Client:
    """A connection that notes its eviction."""

    def __init__(self) -> None:
        self.is_evicted = False

    def evict(self) -> None:
        self.is_evicted = True


def opened(table: ConnectionTable) -> Client:
    assert table.make_room()
    client = Client()
    table.waits(client)
    return client


def test_the_one_that_waits_longest_makes_room() -> None:
    table = ConnectionTable(2)
    first, second = opened(table), opened(table)
    third = opened(table)
    assert (first.is_evicted, second.is_evicted, third.is_evicted) == (True, False, False)
    assert (len(table), table.evicted) == (2, 1)


def test_a_connection_that_is_being_answered_is_never_evicted() -> None:
    table = ConnectionTable(2)
    first, second = opened(table), opened(table)
    table.answers(first)
    opened(table)
    assert (first.is_evicted, second.is_evicted) == (False, True)


def test_a_table_full_of_answers_refuses() -> None:
    table = ConnectionTable(1)
    client = opened(table)
    table.answers(client)
    assert not table.make_room()
    assert (client.is_evicted, table.refused) == (False, 1)
    table.closed(client)
    assert table.make_room()
