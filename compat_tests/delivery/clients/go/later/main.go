// Schedules a record and retries another one: franz-go, headers alone.
package main

import (
	"context"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]))
	if err != nil {
		panic(err)
	}
	defer client.Close()

	later := &kgo.Record{Topic: "deliver", Key: []byte("customer-7"), Value: []byte("a book")}
	later.Headers = []kgo.RecordHeader{
		{Key: "deliver-to", Value: []byte("orders")},
		{Key: "deliver-after", Value: []byte("2s")},
	}
	again := &kgo.Record{Topic: "retry", Key: []byte("customer-7"), Value: []byte("a pen")}
	again.Headers = []kgo.RecordHeader{
		{Key: "retry-topic", Value: []byte("orders.retry.billing")},
		{Key: "retry-backoff", Value: []byte("1s,10s")},
	}
	if err := client.ProduceSync(context.Background(), later, again).FirstErr(); err != nil {
		panic(err)
	}
}
