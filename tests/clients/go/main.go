// Assignments as Go's clients compute them: a state a line in, an answer a line out, as JSON.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"sort"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type member struct {
	ID         string             `json:"member_id"`
	Instance   *string            `json:"group_instance_id"`
	Topics     []string           `json:"topics"`
	Owned      map[string][]int32 `json:"owned"`
	Generation int32              `json:"generation"`
	HasEmpty   bool               `json:"has_empty_user_data"`
	Rack       string             `json:"rack"`
}

type state struct {
	Client      string              `json:"client"`
	Assignor    string              `json:"assignor"`
	Members     []member            `json:"members"`
	Topics      map[string]int      `json:"topics"`
	LeaderRacks map[string][]string `json:"leader_racks"`
}

type answer struct {
	Error    string                      `json:"error,omitempty"`
	Assigned map[string]map[string][]int `json:"assigned"`
}

func main() {
	if len(os.Args) > 1 { // LIBRARY ADDRESS GROUP ASSIGNOR TOPIC...: consume until the input ends
		consume(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5:])
		return
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<26)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var s state
		if err := json.Unmarshal(in.Bytes(), &s); err != nil {
			panic(err)
		}
		assigned, err := assign(s)
		a := answer{Assigned: assigned}
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			panic(err)
		}
	}
}

func assign(s state) (map[string]map[string][]int, error) {
	switch s.Client {
	case "sarama":
		return bySarama(s)
	case "kafka-go":
		return byKafkaGo(s), nil
	default:
		return byFranzGo(s)
	}
}

func bySarama(s state) (map[string]map[string][]int, error) {
	strategy := saramaStrategy(s.Assignor)
	members := map[string]sarama.ConsumerGroupMemberMetadata{}
	for _, m := range s.Members {
		metadata := sarama.ConsumerGroupMemberMetadata{Version: 1, Topics: m.Topics}
		if m.HasEmpty {
			metadata.UserData = []byte{}
		} else if s.Assignor == "sticky" && len(m.Owned) > 0 {
			metadata.UserData = history(m) // its version 1 is the one that kgo writes
		} else if s.Assignor == "cooperative-sticky" {
			metadata.Version, metadata.GenerationID = 2, m.Generation
			for topic, partitions := range m.Owned {
				owned := &sarama.OwnedPartition{Topic: topic, Partitions: partitions}
				metadata.OwnedPartitions = append(metadata.OwnedPartitions, owned)
			}
		}
		members[m.ID] = metadata
	}
	topics := map[string][]int32{}
	for _, m := range s.Members { // it asks for the topics that members subscribe to, and no others
		for _, topic := range m.Topics {
			topics[topic] = nil
		}
	}
	for topic, count := range s.Topics {
		if _, isRead := topics[topic]; isRead {
			for p := 0; p < count; p++ {
				topics[topic] = append(topics[topic], int32(p))
			}
		}
	}
	plan, err := strategy.Plan(members, topics)
	if err != nil {
		return nil, err
	}
	assigned := map[string]map[string][]int{}
	for id, of := range plan {
		for topic, partitions := range of {
			for _, p := range partitions {
				add(assigned, id, topic, int(p))
			}
		}
	}
	return assigned, nil
}

func saramaStrategy(assignor string) sarama.BalanceStrategy {
	return map[string]func() sarama.BalanceStrategy{
		"range":              sarama.NewBalanceStrategyRange,
		"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
		"sticky":             sarama.NewBalanceStrategySticky,
		"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
	}[assignor]()
}

func byKafkaGo(s state) map[string]map[string][]int {
	var members []kafka.GroupMember
	for _, m := range s.Members {
		of := kafka.GroupMember{ID: m.ID, Topics: m.Topics}
		if s.Assignor == "rack-affinity" {
			of.UserData = []byte(m.Rack)
		}
		members = append(members, of)
	}
	var names []string
	for topic := range s.Topics {
		names = append(names, topic)
	}
	sort.Strings(names)
	var partitions []kafka.Partition
	for _, topic := range names {
		for p := 0; p < s.Topics[topic]; p++ {
			partition := kafka.Partition{Topic: topic, ID: p}
			if racks := s.LeaderRacks[topic]; racks != nil {
				partition.Leader.Rack = racks[p]
			}
			partitions = append(partitions, partition)
		}
	}
	assigned := map[string]map[string][]int{}
	for id, of := range kafkaGoBalancer(s.Assignor, "").AssignGroups(members, partitions) {
		for topic, numbers := range of {
			for _, p := range numbers {
				add(assigned, id, topic, p)
			}
		}
	}
	return assigned
}

func kafkaGoBalancer(assignor, rack string) kafka.GroupBalancer {
	return map[string]kafka.GroupBalancer{
		"range":         kafka.RangeGroupBalancer{},
		"roundrobin":    kafka.RoundRobinGroupBalancer{},
		"rack-affinity": kafka.RackAffinityGroupBalancer{Rack: rack},
	}[assignor]
}

func byFranzGo(s state) (map[string]map[string][]int, error) {
	balancer := franzGoBalancer(s.Assignor)
	var members []kmsg.JoinGroupResponseMember
	for _, m := range s.Members {
		metadata := kmsg.NewConsumerMemberMetadata()
		metadata.Version = 3
		metadata.Topics = m.Topics
		if s.Assignor == "sticky" {
			metadata.UserData = history(m)
		} else if s.Assignor == "cooperative-sticky" {
			metadata.Generation = m.Generation
			for topic, partitions := range m.Owned {
				owned := kmsg.NewConsumerMemberMetadataOwnedPartition()
				owned.Topic, owned.Partitions = topic, partitions
				metadata.OwnedPartitions = append(metadata.OwnedPartitions, owned)
			}
		}
		joined := kmsg.NewJoinGroupResponseMember()
		joined.MemberID, joined.InstanceID = m.ID, m.Instance
		joined.ProtocolMetadata = metadata.AppendTo(nil)
		members = append(members, joined)
	}
	// kgo sorts the members of a JoinGroup response before any balancer sees them (sortJoinMembers).
	sort.Slice(members, func(i, j int) bool { return before(members[i], members[j]) })
	b, _, err := balancer.MemberBalancer(members)
	if err != nil {
		return nil, err
	}
	// kgo asks for the topics that members subscribe to, and no others.
	counts := map[string]int32{}
	for _, m := range s.Members {
		for _, topic := range m.Topics {
			if count, exists := s.Topics[topic]; exists {
				counts[topic] = int32(count)
			}
		}
	}
	plan, err := b.(kgo.GroupMemberBalancerOrError).BalanceOrError(counts)
	if err != nil {
		return nil, err
	}
	assigned := map[string]map[string][]int{}
	for _, of := range plan.IntoSyncAssignment() {
		var a kmsg.ConsumerMemberAssignment
		if err := a.ReadFrom(of.MemberAssignment); err != nil {
			return nil, err
		}
		for _, topic := range a.Topics {
			for _, p := range topic.Partitions {
				add(assigned, of.MemberID, topic.Topic, int(p))
			}
		}
	}
	return assigned, nil
}

func franzGoBalancer(assignor string) kgo.GroupBalancer {
	return map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"roundrobin":         kgo.RoundRobinBalancer(),
		"sticky":             kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}[assignor]
}

func history(m member) []byte {
	data := kmsg.NewStickyMemberMetadata()
	data.Generation = m.Generation
	for topic, partitions := range m.Owned {
		owned := kmsg.NewStickyMemberMetadataCurrentAssignment()
		owned.Topic, owned.Partitions = topic, partitions
		data.CurrentAssignment = append(data.CurrentAssignment, owned)
	}
	return data.AppendTo(nil)
}

func before(a, b kmsg.JoinGroupResponseMember) bool {
	switch {
	case a.InstanceID != nil && b.InstanceID != nil:
		return *a.InstanceID < *b.InstanceID
	case a.InstanceID != nil || b.InstanceID != nil:
		return a.InstanceID != nil
	default:
		return a.MemberID < b.MemberID
	}
}

func add(assigned map[string]map[string][]int, id, topic string, p int) {
	if assigned[id] == nil {
		assigned[id] = map[string][]int{}
	}
	assigned[id][topic] = append(assigned[id][topic], p)
}
