# A name made of the number of the process can be guessed, and a link be put there.
printf 'a,b\n1,2\n' >in.csv
for to in out.tfrecord out.csv out.npz; do
    echo "not yours" >victim
    from=in.csv
    [ "$to" = out.tfrecord ] || from=first.tfrecord
    runs 0 sh -c 'ln -s "$PWD/victim" "$3.tmp-$$" && exec "$1" data convert "$2" "$3"' \
        sh "$lockstep" "$from" "$to"
    [ "$(cat victim)" = "not yours" ] || fail "$to was written through a link"
    [ ! -L "$to" ] || fail "$to is a link"
    [ "$to" != out.tfrecord ] || mv out.tfrecord first.tfrecord
done
