// A kfake cluster of one broker that creates topics by itself: the address on standard output, until SIGTERM.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	began := time.Now()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(1))
	if err != nil {
		panic(err)
	}
	fmt.Println(cluster.ListenAddrs()[0], time.Since(began).Seconds())
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	<-ended
	cluster.Close()
}
