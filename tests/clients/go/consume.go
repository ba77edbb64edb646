package main

import (
	"context"
	"io"
	"os"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consume joins a group with one of the libraries, as a program would, until standard input ends.
func consume(library, address, group, assignor string, topics []string) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	switch library {
	case "franz-go":
		withFranzGo(ctx, address, group, assignor, topics)
	case "kafka-go":
		withKafkaGo(ctx, address, group, assignor, topics)
	default:
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

func withKafkaGo(ctx context.Context, address, group, assignor string, topics []string) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:        []string{address},
		GroupID:        group,
		GroupTopics:    topics,
		GroupBalancers: []kafka.GroupBalancer{kafkaGoBalancer(assignor, "rack-a")},
	})
	for ctx.Err() == nil {
		reader.ReadMessage(ctx)
	}
	reader.Close()
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
