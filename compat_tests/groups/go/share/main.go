// A member of a share group on franz-go. It accepts each record immediately; after the command
// "hold", when it is told to.
package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"wirebroker/groupmembers/speaking"
)

var verdicts = map[string]kgo.AckStatus{
	"accept":  kgo.AckAccept,
	"release": kgo.AckRelease,
	"reject":  kgo.AckReject,
}

var events = map[string]string{
	"accept":  "accepted",
	"release": "released",
	"reject":  "rejected",
}

type place struct {
	topic     string
	partition int32
}

// The partitions whose last acknowledgements were refused; callbacks fill it.
var (
	refusedLock sync.Mutex
	refused     = map[place]error{}
)

func main() {
	settings := speaking.ReadShare()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(settings.Bootstrap, ",")...),
		kgo.ShareGroup(settings.Group),
		kgo.ConsumeTopics(strings.Split(settings.Topics, ",")...),
		kgo.ShareMaxRecords(10),
		kgo.ShareMaxRecordsStrict(),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.MetadataMinAge(250*time.Millisecond),
		kgo.ShareAckCallback(takeResults),
	)
	if err != nil {
		panic(err)
	}
	commands := speaking.Commands()
	isHolding, isOpen := false, true
	for isOpen {
		select {
		case command := <-commands:
			isOpen, isHolding = command != "leave", command == "hold"
		default:
			isOpen = process(client, commands, isHolding)
			isHolding = isHolding && !hasHeld
		}
	}
	client.Close()
	speaking.Left()
}

// Whether the last batch was held.
var hasHeld bool

// process takes and acknowledges one batch; it returns false on the command "leave".
func process(client *kgo.Client, commands <-chan string, isHolding bool) bool {
	hasHeld = false
	polling, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	fetches := client.PollRecords(polling, 10)
	for _, failed := range fetches.Errors() {
		if polling.Err() == nil {
			speaking.Error(failed.Err)
		}
	}
	records := fetches.Records()
	if len(records) == 0 {
		return true
	}
	for _, record := range records {
		speaking.Acquired(record.Topic, record.Partition, record.Offset, record.DeliveryCount())
	}
	command := "accept"
	if isHolding {
		hasHeld = true
		speaking.Holding()
		command = <-commands
	}
	if command == "leave" {
		client.MarkAcks(kgo.AckRelease, records...)
		return false
	}
	acknowledge(client, records, command)
	return true
}

func acknowledge(client *kgo.Client, records []*kgo.Record, command string) {
	refusedLock.Lock()
	clear(refused)
	refusedLock.Unlock()
	client.MarkAcks(verdicts[command], records...)
	flushing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := client.FlushAcks(flushing); err != nil {
		speaking.Refused("", 0, err)
		return
	}
	refusedLock.Lock()
	defer refusedLock.Unlock()
	for at, err := range refused {
		speaking.Refused(at.topic, at.partition, err)
	}
	for _, record := range records {
		if refused[place{record.Topic, record.Partition}] == nil {
			speaking.Acknowledged(events[command], record.Topic, record.Partition, record.Offset)
		}
	}
}

func takeResults(_ *kgo.Client, results kgo.ShareAckResults) {
	refusedLock.Lock()
	defer refusedLock.Unlock()
	for _, result := range results {
		if result.Err != nil {
			refused[place{result.Topic, result.Partition}] = result.Err
		}
	}
}
