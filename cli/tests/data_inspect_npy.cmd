data inspect data/too_large.npy --json
