from numpy import ndarray

def kernel_products(
    means: ndarray,
    spreads: ndarray,
    masses: ndarray,
    sizes: ndarray,
    index_a: ndarray,
    index_b: ndarray,
) -> ndarray: ...
def masked_mmd_gaps(
    means: ndarray,
    spreads: ndarray,
    masks: ndarray,
    masses: ndarray,
    sizes: ndarray,
    index_a: ndarray,
    index_b: ndarray,
) -> ndarray: ...
def mmd_gaps(
    own: ndarray, products: ndarray, index_a: ndarray, index_b: ndarray
) -> ndarray: ...
def symbol_mmd_gaps(
    states: ndarray,
    masses: ndarray,
    models: ndarray,
    index_a: ndarray,
    index_b: ndarray,
) -> ndarray: ...
