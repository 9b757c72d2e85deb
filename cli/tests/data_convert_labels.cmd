data convert data/images.idx @TMP/x --labels data/people.csv
