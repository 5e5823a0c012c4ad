"""How figures are taken: pairs, machine, cores, report."""
