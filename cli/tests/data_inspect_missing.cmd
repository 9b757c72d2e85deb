data inspect data/nothing.tfrecord
