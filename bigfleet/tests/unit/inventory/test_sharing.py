"""What machines of a batch share is looked at once; what never repeats is not remembered."""

from bigfleet.inventory._shared_labels import Contents


def test_equal_mappings_get_one_number_and_none_gets_none() -> None:
    contents = Contents[int]()
    shared = {"cpu": 1}
    numbers = contents.number_all([shared, {"cpu": 1}, None, {"cpu": 2}, shared])
    assert numbers == [0, 0, -1, 1, 0]
    assert contents.distinct == [{"cpu": 1}, {"cpu": 2}]


def test_only_so_many_contents_are_remembered() -> None:
    contents = Contents[int]()
    numbers = contents.number_all([{"host": i} for i in (*range(2**16 + 1), 0)])
    assert numbers == list(range(2**16 + 2))
    assert contents.distinct[-1] == {"host": 0}
