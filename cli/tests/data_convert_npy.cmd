data convert data/pairs.npy @TMP/pairs --key pair
data inspect @TMP/pairs.tfrecord --records 1
data convert @TMP/pairs.tfrecord @TMP/pairs.csv
data inspect @TMP/pairs.csv --records 1
