"""A Fenwick tree."""

import sys


def solve(text: str) -> str:
    words = text.split()
    count = int(words[0])
    values = list(map(int, words[2 : 2 + count]))
    tree = [0, *values]
    for place in range(1, count + 1):
        above = place + (place & -place)
        if above <= count:
            tree[above] += tree[place]
    found = []
    orders = iter(words[2 + count :])
    for order, one, other in zip(orders, orders, orders, strict=True):
        if order == "set":
            place, value = int(one), int(other)
            more, values[place] = value - values[place], value
            place += 1
            while place <= count:
                tree[place] += more
                place += place & -place
        else:
            first, place, total = int(one), int(other), 0
            while place > first:
                total += tree[place]
                place &= place - 1
            while first > place:
                total -= tree[first]
                first &= first - 1
            found.append(total)
    return "\n".join(map(str, found))


if __name__ == "__main__":
    print(solve(sys.stdin.read()))
