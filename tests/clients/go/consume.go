package main

import (
	"context"
	"io"
	"os"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consume joins a group with one of the libraries, as a program would, until standard input ends.
func consume(library, address, group, assignor string, topics []string) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if library == "franz-go" {
		withFranzGo(ctx, address, group, assignor, topics)
	} else {
		withSarama(ctx, address, group, assignor, topics)
	}
}

func withFranzGo(ctx context.Context, address, group, assignor string, topics []string) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topics...),
		kgo.Balancers(franzGoBalancer(assignor)),
	)
	if err != nil {
		panic(err)
	}
	for ctx.Err() == nil {
		client.PollFetches(ctx)
	}
	client.Close()
}

type handler struct{}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-claim.Messages():
		case <-session.Context().Done():
			return nil
		}
	}
}

func withSarama(ctx context.Context, address, group, assignor string, topics []string) {
	config := sarama.NewConfig()
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{saramaStrategy(assignor)}
	client, err := sarama.NewConsumerGroup([]string{address}, group, config)
	if err != nil {
		panic(err)
	}
	for ctx.Err() == nil {
		client.Consume(ctx, topics, handler{})
	}
	client.Close()
}
