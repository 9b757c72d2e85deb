data convert data/too_large.npy @TMP/x --shards 2
data plan --files @TMP/x*
