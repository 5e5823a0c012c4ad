// A group member on franz-go. Rebalances wait until what was polled has been committed; a commit
// that is refused, because one has begun, is tried again while the partition is still ours.
package main

import (
	"context"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"wirebroker/groupmembers/speaking"
)

// Those of the broker (KIP-848) begin with "broker-"; franz-go names them by its own balancers.
var balancers = map[string]func() kgo.GroupBalancer{
	"broker-uniform":     kgo.StickyBalancer,
	"broker-range":       kgo.RangeBalancer,
	"range":              kgo.RangeBalancer,
	"roundrobin":         kgo.RoundRobinBalancer,
	"sticky":             kgo.StickyBalancer,
	"cooperative-sticky": kgo.CooperativeStickyBalancer,
}

// What has been processed and not yet been committed; callbacks and polls never overlap.
var done = map[int32]*kgo.Record{}

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
	assigned := func(_ context.Context, _ *kgo.Client, of map[string][]int32) {
		speaking.Assigned(of[settings.Topic])
	}
	revoked := func(_ context.Context, _ *kgo.Client, of map[string][]int32) {
		for _, partition := range of[settings.Topic] {
			delete(done, partition)
		}
		speaking.Revoked(of[settings.Topic])
	}
	all := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(settings.Bootstrap, ",")...),
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
		kgo.OnPartitionsAssigned(assigned),
		kgo.OnPartitionsRevoked(revoked),
		kgo.OnPartitionsLost(revoked),
	}
	if strings.HasPrefix(settings.Assignors[0], "broker-") {
		all = append(all, kgo.ServerSideBalancer())
	}
	if settings.InstanceID != "" {
		all = append(all, kgo.InstanceID(settings.InstanceID))
	}
	return all
}

func process(ctx context.Context, client *kgo.Client) {
	defer client.AllowRebalance()
	polling, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	fetches := client.PollRecords(polling, 100)
	for _, failed := range fetches.Errors() {
		if polling.Err() == nil {
			speaking.Error(failed.Err)
		}
	}
	for _, record := range fetches.Records() {
		speaking.Record(record.Partition, record.Offset)
		done[record.Partition] = record
	}
	if len(done) == 0 {
		return
	}
	records := make([]*kgo.Record, 0, len(done))
	for _, record := range done {
		records = append(records, record)
	}
	if err := client.CommitRecords(context.Background(), records...); err != nil {
		speaking.Error(err)
		return
	}
	for _, record := range records {
		speaking.Committed(record.Partition, record.Offset+1)
	}
	clear(done)
}
