import sys

from connection import connect
from handbook import add_handbook
from tool import look_up

question = sys.argv[1] if len(sys.argv) > 1 else "How long does a refund take?"
with connect() as quarry:
    add_handbook(quarry, "handbook")
    print(look_up(quarry, question))
