"""The colours of all pictures."""

# The colours of Okabe and Ito, without the yellow that white paper swallows: told apart
# with any colour vision.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
