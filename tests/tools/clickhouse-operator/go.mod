// Only the custom resource definitions of the module are taken, so that nothing imports it. It has no versions: this commit is that of 0.16.1.
module github.com/keyturn/keyturn/tests/tools/clickhouse-operator

go 1.26.0

require github.com/altinity/clickhouse-operator v0.0.0-20211101130143-50134723c388
