data inspect data/images.idx --records 1
