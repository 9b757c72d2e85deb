data inspect data/people.csv --records many
