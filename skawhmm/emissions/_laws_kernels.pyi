from numpy import ndarray

def law_products(
    means: ndarray,
    spreads: ndarray,
    masses: ndarray,
    sizes: ndarray,
    index_a: ndarray,
    index_b: ndarray,
) -> ndarray: ...
def masked_law_gaps(
    means: ndarray,
    spreads: ndarray,
    masks: ndarray,
    masses: ndarray,
    sizes: ndarray,
    index_a: ndarray,
    index_b: ndarray,
) -> ndarray: ...
def law_gaps(
    own: ndarray, products: ndarray, index_a: ndarray, index_b: ndarray
) -> ndarray: ...
def symbol_law_gaps(
    states: ndarray,
    masses: ndarray,
    models: ndarray,
    index_a: ndarray,
    index_b: ndarray,
) -> ndarray: ...
