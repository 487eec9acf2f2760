import pytest
from oracle.cases import N_CASES, load


@pytest.fixture(scope="session")
def cases():
    return load()


@pytest.fixture(params=range(N_CASES))
def case(cases, request):
    """Arrays of one frozen case: two models and what an independent program gave."""
    return cases[request.param]
