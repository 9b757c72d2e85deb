data inspect data/people.csv
