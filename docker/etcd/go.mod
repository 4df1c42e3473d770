module etcd

go 1.26.0
