data inspect --json data/empty.csv
