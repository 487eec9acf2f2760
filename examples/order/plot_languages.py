"""
Which languages are similar?
============================

A text is a sequence of letters. Without any labels, its model learns that there are
vowels, consonants and ends of words, and how they follow each other. The distances
between the models of twelve languages are drawn as a map.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMTransformer, pairwise_hmm_distances
from skawhmm.datasets import data_home
from skawhmm.plot import HMMMapDisplay

# %%
# The first article of the Universal Declaration of Human Rights, without accents. If
# the whole declaration is in the data folder, it is used instead.
ARTICLES = {
    "English": (
        "all human beings are born free and equal in dignity and rights they are "
        "endowed with reason and conscience and should act towards one another in a "
        "spirit of brotherhood"
    ),
    "German": (
        "alle menschen sind frei und gleich an wurde und rechten geboren sie sind mit "
        "vernunft und gewissen begabt und sollen einander im geist der bruderlichkeit "
        "begegnen"
    ),
    "Dutch": (
        "alle mensen worden vrij en gelijk in waardigheid en rechten geboren zij zijn "
        "begiftigd met verstand en geweten en behoren zich jegens elkander in een "
        "geest van broederschap te gedragen"
    ),
    "Swedish": (
        "alla manniskor aro fodda fria och lika i varde och rattigheter de aro "
        "utrustade med fornuft och samvete och bora handla gentemot varandra i en "
        "anda av broderskap"
    ),
    "French": (
        "tous les etres humains naissent libres et egaux en dignite et en droits ils "
        "sont doues de raison et de conscience et doivent agir les uns envers les "
        "autres dans un esprit de fraternite"
    ),
    "Italian": (
        "tutti gli esseri umani nascono liberi ed eguali in dignita e diritti essi "
        "sono dotati di ragione e di coscienza e devono agire gli uni verso gli altri "
        "in spirito di fratellanza"
    ),
    "Spanish": (
        "todos los seres humanos nacen libres e iguales en dignidad y derechos y "
        "dotados como estan de razon y conciencia deben comportarse fraternalmente "
        "los unos con los otros"
    ),
    "Portuguese": (
        "todos os seres humanos nascem livres e iguais em dignidade e em direitos "
        "dotados de razao e de consciencia devem agir uns para com os outros em "
        "espirito de fraternidade"
    ),
    "Finnish": (
        "kaikki ihmiset syntyvat vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan "
        "heille on annettu jarki ja omatunto ja heidan on toimittava toisiaan kohtaan "
        "veljeyden hengessa"
    ),
    "Hungarian": (
        "minden emberi leny szabadon szuletik es egyenlo meltosaga es joga van az "
        "emberek esszel es lelkiismerettel birvan egymassal szemben testveri "
        "szellemben kell hogy viseltessenek"
    ),
    "Polish": (
        "wszyscy ludzie rodza sie wolni i rowni pod wzgledem swej godnosci i swych "
        "praw sa oni obdarzeni rozumem i sumieniem i powinni postepowac wobec innych "
        "w duchu braterstwa"
    ),
    "Indonesian": (
        "semua orang dilahirkan merdeka dan mempunyai martabat dan hak hak yang sama "
        "mereka dikaruniai akal dan hati nurani dan hendaknya bergaul satu sama lain "
        "dalam semangat persaudaraan"
    ),
}
CODES = [
    *("eng", "deu", "nld", "swe", "fra", "ita"),
    *("spa", "por_PT", "fin", "hun", "pol", "ind"),
]
FAMILIES = np.repeat(["Germanic", "Romance", "Uralic", "other"], [4, 4, 2, 2])
names, texts = list(ARTICLES), list(ARTICLES.values())
source = data_home() / "discrete_udhr_chars.npz"
if source.exists():
    with np.load(source) as file:
        letters = file["symbols"][file["X"]]
        languages = np.repeat(file["y"], file["lengths"])
    texts = [letters[languages == code] for code in CODES]
print(
    len(texts), "texts of", min(map(len, texts)), "to", max(map(len, texts)), "letters"
)

# %%
# One model per text, adapted from a model of all texts. Because the texts are short,
# the common model counts as much as twenty letters per state.
hmm = HMMTransformer(
    n_components=4,
    emission="categorical",
    prior="pooled",
    relevance=20,
    random_state=0,
)
models = hmm.fit_transform(texts)
distances = pairwise_hmm_distances(models)
nearest = np.argsort(distances, axis=1)[:, 1]
for name, other in zip(names, nearest, strict=True):
    print(f"{name:10} is nearest to {names[other]}")

# %%
# The map, with a line to the nearest language, and the letters that the states of the
# common model emit: the darker, the more probable.
fig, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4.8), width_ratios=[3, 1.1], layout="constrained"
)
display = HMMMapDisplay.from_distances(distances, FAMILIES, n_neighbors=1, ax=left)
for name, position in zip(names, display.positions, strict=True):
    # Portuguese is close to Spanish.
    place = {"xytext": (-5, -11), "ha": "right"} if name == "Spanish" else {}
    place = {"xytext": (5, 4), "textcoords": "offset points", "fontsize": 9, **place}
    left.annotate(name, position, **place)
low, high = display.positions[:, 1].min(), display.positions[:, 1].max()
left.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
left.set_title("languages")
order = np.argsort(hmm.pooled_model_.emissionprobs[0].argmax(axis=0), kind="stable")
probabilities = hmm.pooled_model_.emissionprobs[0][:, order].T
right.imshow(probabilities, aspect="auto", cmap="Blues", vmin=0, vmax=0.4)
labels = ["space" if symbol == " " else symbol for symbol in hmm.symbols_[order]]
right.set_yticks(range(len(labels)), labels, fontsize=8)
right.set_xticks(range(4))
right.set(xlabel="state", title="letters of the states")
plt.show()
