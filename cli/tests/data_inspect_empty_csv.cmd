data inspect data/empty.csv
