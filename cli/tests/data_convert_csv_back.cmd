data convert data/people.csv @TMP/people --compression GZIP
data convert @TMP/people.tfrecord @TMP/back.csv
data inspect @TMP/back.csv --records 5
