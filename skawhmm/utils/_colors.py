"""The colours of all plots."""

# The colours of Okabe and Ito, which can be distinguished with any colour vision,
# without their yellow, which is hard to see on white paper.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
