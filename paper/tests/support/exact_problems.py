"""Random small problems for Hypothesis."""

from hypothesis import strategies as st


@st.composite
def bag_problems(draw, max_bags=4, max_size=3, levels=6):
    """Unequal bags in scrambled order, a coarse feature (so that values repeat), and counts."""
    sizes = draw(st.lists(st.integers(1, max_size), min_size=2, max_size=max_bags))
    member = draw(st.permutations([bag for bag, size in enumerate(sizes) for _ in range(size)]))
    positives = [draw(st.integers(0, size)) for size in sizes]
    x = draw(st.lists(st.integers(0, levels), min_size=len(member), max_size=len(member)))
    return list(member), sizes, positives, x
