import unittest

from connection import connect
from handbook import add_handbook
from quarry_client import QuarryError
from tool import look_up


class LookUp(unittest.TestCase):
    def setUp(self) -> None:
        self.quarry = connect()
        self.addCleanup(self.quarry.close)
        add_handbook(self.quarry, "handbook")

    def test_the_tool_finds_the_passage_that_answers_a_question(self) -> None:
        text = look_up(self.quarry, "how long until I am refunded")
        self.assertRegex(text, r"^refunds: [\s\S]*five days")

    def test_a_question_must_not_be_empty(self) -> None:
        with self.assertRaisesRegex(QuarryError, "question"):
            look_up(self.quarry, "")


if __name__ == "__main__":
    unittest.main()
