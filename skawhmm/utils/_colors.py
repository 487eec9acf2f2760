"""The colours of all pictures."""

# The colours of Okabe and Ito, which differ with any colour vision, without the yellow
# that is hard to see on white paper.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
