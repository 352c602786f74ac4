"""Python objects go around a ring; rank 0 computes longer before. Repaired: all compute the same."""

from zoo import Zoo

zoo = Zoo()
less = zoo.size * zoo.step
zoo.first_step()
for _ in range(zoo.steps):
    if zoo.repaired:
        zoo.work(zoo.step - less * (zoo.ranks - 1) / zoo.ranks)
    else:
        zoo.work(zoo.step - (less if zoo.rank else 0))
        zoo.expected += less if zoo.rank else 0
    zoo.comm.sendrecv({"halo": b"x" * 500}, dest=zoo.right, source=zoo.left)
zoo.end()
