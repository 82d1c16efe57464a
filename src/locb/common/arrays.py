"""Type aliases for NumPy arrays. Shapes are documented where the arrays are declared."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
IndexArray: TypeAlias = NDArray[np.int32]  # indices in long arrays: half the memory of ``Ints``
Bools: TypeAlias = NDArray[np.bool_]
Words: TypeAlias = NDArray[np.uint64]  # 64-bit words: bit sets, hash keys, state of a random generator
