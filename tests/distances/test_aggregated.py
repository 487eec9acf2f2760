from numpy.testing import assert_allclose

from skawhmm import IAW, MAW, pairwise_hmm_components, pairwise_hmm_distances


def test_distance_mixes_the_components(make_batch):
    models = make_batch(3)
    for metric in (MAW(0.3, 2), IAW(0.3, 2, n_samples=20)):
        marginal, transition = pairwise_hmm_components(models, metric=metric)
        assert_allclose(
            pairwise_hmm_distances(models, metric=metric),
            0.7 * marginal + 0.3 * transition,
            rtol=1e-15,
        )
