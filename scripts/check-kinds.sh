#!/bin/sh
# What a strategy or a variable does is said by its table, and a file asks the table, not
# which kind it has: no enumeration of kinds, no comparison of tables, and the tables of
# variables are named by src/variable and by the strategies that create variables only.
bad=0
cd "$(dirname "$0")/.." || exit 1

# Prints what matches $2 in the files that $3... select, under the heading $1.
refuse() {
    heading=$1
    pattern=$2
    shift 2
    found=$(grep -rnE "$pattern" --include='*.[ch]' "$@")
    if [ -n "$found" ]; then
        echo "$heading:"
        echo "$found"
        bad=1
    fi
}

refuse "kinds are tables, not enumerators" \
    'lsi_(strategy|variable)_kind|LSI_(DEFAULT|ONE_DEVICE|MIRRORED|CENTRAL_STORAGE|MIRRORED_VARIABLE|SYNC_ON_READ|AGGREGATING)\b' \
    src cli tests
refuse "tables are asked, not compared" \
    '(->|\.)ops *[!=]= *&?lsi_|&lsi_[a-z_]+_variable *[!=]=|[!=]= *&lsi_[a-z_]+_variable\b' src cli tests
refuse "tables of variables are named by src/variable and src/strategy only" \
    '\blsi_(plain|mirrored|sync_on_read|aggregating)_variable\b' \
    --exclude-dir=variable --exclude-dir=strategy src cli tests
refuse "names of strategies are for messages, not for decisions" \
    'strcmp\([^)]*ops->name' src/replica src/variable src/cross_replica src/optim src/model src/input
exit $bad
