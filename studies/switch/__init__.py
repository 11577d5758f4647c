"""Study of switch agents, rules, the best constant limits and what bounds them, family by family of worlds."""
