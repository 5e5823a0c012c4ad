// A group member on franz-go. Rebalances wait until what was polled has been committed.
package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"wirebroker/groupmembers/speaking"
)

var balancers = map[string]func() kgo.GroupBalancer{
	"range":              kgo.RangeBalancer,
	"roundrobin":         kgo.RoundRobinBalancer,
	"sticky":             kgo.StickyBalancer,
	"cooperative-sticky": kgo.CooperativeStickyBalancer,
}

func main() {
	settings := speaking.Read()
	ctx, cancel := context.WithCancel(context.Background())
	client, err := kgo.NewClient(options(settings)...)
	if err != nil {
		panic(err)
	}
	speaking.OnLeave(cancel)
	for ctx.Err() == nil {
		process(ctx, client)
	}
	client.CloseAllowingRebalance()
	speaking.Left()
}

func options(settings speaking.Settings) []kgo.Opt {
	chosen := make([]kgo.GroupBalancer, 0, len(settings.Assignors))
	for _, name := range settings.Assignors {
		chosen = append(chosen, balancers[name]())
	}
	told := func(tell func([]int32)) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, of map[string][]int32) {
			tell(of[settings.Topic])
		}
	}
	all := []kgo.Opt{
		kgo.SeedBrokers(settings.Bootstrap),
		kgo.ConsumerGroup(settings.Group),
		kgo.ConsumeTopics(settings.Topic),
		kgo.Balancers(chosen...),
		kgo.SessionTimeout(settings.Session),
		kgo.HeartbeatInterval(settings.Heartbeat),
		kgo.RebalanceTimeout(settings.Rebalance),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.OnPartitionsAssigned(told(speaking.Assigned)),
		kgo.OnPartitionsRevoked(told(speaking.Revoked)),
		kgo.OnPartitionsLost(told(speaking.Revoked)),
	}
	if settings.InstanceID != "" {
		all = append(all, kgo.InstanceID(settings.InstanceID))
	}
	return all
}

func process(ctx context.Context, client *kgo.Client) {
	defer client.AllowRebalance()
	fetches := client.PollRecords(ctx, 100)
	for _, failed := range fetches.Errors() {
		if ctx.Err() == nil {
			speaking.Error(failed.Err)
		}
	}
	records := fetches.Records()
	if len(records) == 0 {
		return
	}
	done := map[int32]int64{}
	for _, record := range records {
		speaking.Record(record.Partition, record.Offset)
		done[record.Partition] = record.Offset + 1
	}
	if err := client.CommitRecords(context.Background(), records...); err != nil {
		speaking.Error(err)
		return
	}
	for partition, offset := range done {
		speaking.Committed(partition, offset)
	}
}
