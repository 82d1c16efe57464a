"""Building blocks of the kernels: compilation, linear algebra, bit sets."""
