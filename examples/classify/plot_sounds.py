"""
How do I get from sound files to a classifier?
==============================================

A folder with one subfolder of wav files per class becomes sequences of cepstral
coefficients, the sequences become models, and the nearest models determine the class of
a new sound. The fitted classifier is saved and loaded again.
"""

import tempfile
from pathlib import Path

import joblib
import matplotlib.pyplot as plt
import numpy as np
from scipy.io import wavfile
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skawhmm import Framewise, HMMTransformer, KNeighborsHMMClassifier
from skawhmm.datasets import load_wav_folder

# %%
# Any folder of recordings will do. Here the calls of three invented birds are written
# to one: each bird repeats its own pattern of pitches.
RATE = 16000
BIRDS = {"finch": [2200, 3000], "owl": [500, 420], "siskin": [2200, 3000, 4200]}
rng = np.random.default_rng(0)


def call(pitches):
    """Synthesise one call: notes of unequal length, out of tune, with noise."""
    notes = []
    for pitch in pitches * int(rng.integers(2, 5)):
        times = np.arange(int(RATE * rng.uniform(0.06, 0.12))) / RATE
        tone = np.sin(2 * np.pi * pitch * rng.uniform(0.9, 1.1) * times)
        notes.append(tone * np.hanning(len(times)))
    return np.concatenate(notes) + 0.05 * rng.normal(size=sum(map(len, notes)))


folder = Path(tempfile.mkdtemp())
for bird, pitches in BIRDS.items():
    (folder / bird).mkdir()
    for k in range(20):
        samples = (8000 * call(pitches)).astype(np.int16)
        wavfile.write(folder / bird / f"{k:02}.wav", RATE, samples)

# %%
# One line reads the folder: 13 coefficients per 10 ms, without their derivatives.
sounds = load_wav_folder(folder, deltas=0)
print(len(sounds.data), "sounds,", sounds.data[0].shape, sounds.target_names)

# %%
# The classifier compares models with three states. It is saved with joblib; use skops
# for untrusted files.
train, test = train_test_split(
    np.arange(60), stratify=sounds.target, test_size=0.5, random_state=0
)
pipe = Pipeline(
    [
        ("scale", Framewise(StandardScaler())),
        ("hmm", HMMTransformer(n_components=3, random_state=0)),
        ("knn", KNeighborsHMMClassifier(n_neighbors=3)),
    ]
)
pipe.fit([sounds.data[n] for n in train], sounds.target[train])
joblib.dump(pipe, folder / "birds.joblib")
again = joblib.load(folder / "birds.joblib")
queries = [sounds.data[n] for n in test]
print("accuracy on new sounds:", again.score(queries, sounds.target[test]))

# %%
# What the models have learned, for one sound per bird: the frames and their states.
fig, axes = plt.subplots(3, 1, figsize=(7, 5.6), sharex=True, layout="constrained")
colours = np.array(["#0072B2", "#E69F00", "#009E73"])
for ax, bird in zip(axes, BIRDS, strict=True):
    n = next(n for n in test if sounds.target[n] == bird)
    x = again[:1].transform([sounds.data[n]])
    (path,), _ = again.named_steps["hmm"].transform(x).decode(x)
    times = 10 * np.arange(len(path))
    ax.plot(times, x[0][:, 1], color="0.8", zorder=0)
    ax.scatter(times, x[0][:, 1], c=colours[path], s=14)
    guess = again.predict([sounds.data[n]])[0]
    ax.set(ylabel="coefficient 1", title=f"{bird}, heard as {guess}")
axes[-1].set_xlabel("time in ms (colours: states of the model of this sound)")
plt.show()
