// Package speaking is what a member program is given, what it says, and what it is told; see
// ../../README.md.
package speaking

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Settings are the arguments of a member program, in their order.
type Settings struct {
	Name, Bootstrap, Topic, Group string
	Assignors                     []string
	InstanceID                    string // empty for none
	Session, Heartbeat, Rebalance time.Duration
}

var name string

// Read reads the arguments of this program.
func Read() Settings {
	given := os.Args[1:]
	if len(given) != 7 {
		panic("arguments: name bootstrap topic group assignors instance-id session-ms")
	}
	name = given[0]
	instanceID := given[5]
	if instanceID == "-" {
		instanceID = ""
	}
	sessionMs, err := strconv.Atoi(given[6])
	if err != nil {
		panic(err)
	}
	session := time.Duration(sessionMs) * time.Millisecond
	return Settings{
		Name:       name,
		Bootstrap:  given[1],
		Topic:      given[2],
		Group:      given[3],
		Assignors:  strings.Split(given[4], ","),
		InstanceID: instanceID,
		Session:    session,
		Heartbeat:  session / 10,
		Rebalance:  max(10*time.Second, session),
	}
}

// Assigned says that these partitions are ours now.
func Assigned(partitions []int32) { sayPartitions("assigned", partitions) }

// Revoked says that these partitions are no longer ours.
func Revoked(partitions []int32) { sayPartitions("revoked", partitions) }

// Record says that a record was processed.
func Record(partition int32, offset int64) {
	say(map[string]any{"event": "record", "partition": partition, "offset": offset})
}

// Committed says that the coordinator has acknowledged this offset.
func Committed(partition int32, offset int64) {
	say(map[string]any{"event": "committed", "partition": partition, "offset": offset})
}

// Error says what went wrong.
func Error(err error) { say(map[string]any{"event": "error", "error": err.Error()}) }

// Left says that the program has left the group and ends.
func Left() { say(map[string]any{"event": "left"}) }

// OnLeave calls leave at the command "leave", or at the end of standard input.
func OnLeave(leave func()) {
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		leave()
	}()
}

func sayPartitions(event string, partitions []int32) {
	if partitions == nil {
		partitions = []int32{}
	}
	say(map[string]any{"event": event, "partitions": partitions})
}

// Several members write into one pipe: a line goes out by one call, so that lines never mix.
func say(event map[string]any) {
	event["member"] = name
	line, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		panic(fmt.Sprint("nobody listens: ", err))
	}
}
