// A group member on sarama. Its commits are acknowledged within Commit, which says nothing of it,
// so neither does this program.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"

	"wirebroker/groupmembers/speaking"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":      sarama.NewBalanceStrategyRange,
	"roundrobin": sarama.NewBalanceStrategyRoundRobin,
	"sticky":     sarama.NewBalanceStrategySticky,
}

type member struct{ topic string }

func (m member) Setup(session sarama.ConsumerGroupSession) error {
	speaking.Assigned(session.Claims()[m.topic])
	return nil
}

func (m member) Cleanup(session sarama.ConsumerGroupSession) error {
	speaking.Revoked(session.Claims()[m.topic])
	return nil
}

func (m member) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			speaking.Record(message.Partition, message.Offset)
			session.MarkMessage(message, "")
			session.Commit()
		case <-session.Context().Done():
			return nil
		}
	}
}

func main() {
	settings := speaking.Read()
	group, err := sarama.NewConsumerGroup(
		[]string{settings.Bootstrap}, settings.Group, config(settings),
	)
	if err != nil {
		panic(err)
	}
	go func() {
		for err := range group.Errors() {
			speaking.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	speaking.OnLeave(cancel)
	for ctx.Err() == nil {
		err := group.Consume(ctx, []string{settings.Topic}, member{settings.Topic})
		if err != nil && !errors.Is(err, context.Canceled) {
			speaking.Error(err)
		}
	}
	if err := group.Close(); err != nil {
		speaking.Error(err)
	}
	speaking.Left()
}

func config(settings speaking.Settings) *sarama.Config {
	chosen := make([]sarama.BalanceStrategy, 0, len(settings.Assignors))
	for _, name := range settings.Assignors {
		chosen = append(chosen, strategies[name]())
	}
	all := sarama.NewConfig()
	all.ClientID = settings.Name
	all.Consumer.Group.Rebalance.GroupStrategies = chosen
	all.Consumer.Group.Rebalance.Timeout = settings.Rebalance
	all.Consumer.Group.Session.Timeout = settings.Session
	all.Consumer.Group.Heartbeat.Interval = settings.Heartbeat
	all.Consumer.Group.InstanceId = settings.InstanceID
	all.Consumer.Offsets.Initial = sarama.OffsetOldest
	all.Consumer.Offsets.AutoCommit.Enable = false
	all.Consumer.Return.Errors = true
	all.Consumer.MaxWaitTime = 100 * time.Millisecond
	return all
}
