# The second of three names cannot be taken: the first one was replaced by then.
printf 'a,b\n1,2\n3,4\n5,6\n' >old.csv
printf 'a,b\n7,8\n9,10\n11,12\n' >new.csv
runs 0 "$lockstep" data convert old.csv x --shards 3
mkdir keep
cp x-* keep
rm x-00001-of-00003.tfrecord
mkdir x-00001-of-00003.tfrecord
runs 1 "$lockstep" data convert new.csv x --shards 3
says "x-00001-of-00003.tfrecord is a folder"
for file in x-00000-of-00003.tfrecord x-00002-of-00003.tfrecord; do
    cmp "$file" "keep/$file" || fail "$file is not what it was"
done
[ "$(find . -name '*tmp*' | wc -l)" = 0 ] || fail "left behind: $(find . -name '*tmp*')"

# A name that was free is free again.
rm x-00000-of-00003.tfrecord
runs 1 "$lockstep" data convert new.csv x --shards 3
[ ! -e x-00000-of-00003.tfrecord ] || fail "a part of what failed is there"

# And what works replaces them all, and leaves nothing else.
rmdir x-00001-of-00003.tfrecord
runs 0 "$lockstep" data convert new.csv x --shards 3
for file in x-0000?-of-00003.tfrecord; do
    ! cmp -s "$file" "keep/$file" || fail "$file was not replaced"
done
[ "$(find . -name '*tmp*' | wc -l)" = 0 ] || fail "left behind: $(find . -name '*tmp*')"

# Files are made with the rights that the user gives to files.
(umask 027 && runs 0 "$lockstep" data convert new.csv rights)
case $(ls -l rights.tfrecord) in -rw-r-----*) ;; *) fail "$(ls -l rights.tfrecord)" ;; esac
