data convert data/people.csv @TMP/people
data inspect @TMP/people.tfrecord
