"""The paper "Optimistic Rates for Learning from Label Proportions"."""
