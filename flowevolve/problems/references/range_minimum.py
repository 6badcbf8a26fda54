"""A segment tree, from the leaves up."""

import sys


def solve(text: str) -> str:
    words = text.split()
    count = int(words[0])
    tree = [0] * count + list(map(int, words[2 : 2 + count]))
    for node in range(count - 1, 0, -1):
        tree[node] = min(tree[2 * node], tree[2 * node + 1])
    found = []
    orders = iter(words[2 + count :])
    for order, one, other in zip(orders, orders, orders, strict=True):
        if order == "set":
            node = int(one) + count
            tree[node] = int(other)
            while node > 1:
                tree[node >> 1] = min(tree[node], tree[node ^ 1])
                node >>= 1
        else:
            first, last = int(one) + count, int(other) + count
            least = tree[first]
            while first < last:
                if first & 1:
                    least = min(least, tree[first])
                    first += 1
                if last & 1:
                    last -= 1
                    least = min(least, tree[last])
                first >>= 1
                last >>= 1
            found.append(least)
    return "\n".join(map(str, found))


if __name__ == "__main__":
    print(solve(sys.stdin.read()))
