package speaking

import (
	"bufio"
	"fmt"
	"os"
)

// ShareSettings are the arguments of a member of a share group, in their order.
type ShareSettings struct {
	Name, Bootstrap, Topics, Group string
}

// ReadShare reads the arguments of this program.
func ReadShare() ShareSettings {
	given := os.Args[1:]
	if len(given) != 4 {
		panic("arguments: name bootstrap topics group")
	}
	name = given[0]
	return ShareSettings{Name: given[0], Bootstrap: given[1], Topics: given[2], Group: given[3]}
}

// Commands returns the lines of standard input; its end is the command "leave".
func Commands() <-chan string {
	commands := make(chan string, 16)
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			commands <- lines.Text()
		}
		commands <- "leave"
	}()
	return commands
}

// Acquired says that a record was delivered to this member, for the count-th time in all.
func Acquired(topic string, partition int32, offset int64, count int32) {
	say(map[string]any{
		"event": "acquired", "partition": nameOf(topic, partition), "offset": offset, "delivery": count,
	})
}

// Acknowledged says that the broker has confirmed the acknowledgement of a record.
func Acknowledged(event, topic string, partition int32, offset int64) {
	say(map[string]any{"event": event, "partition": nameOf(topic, partition), "offset": offset})
}

// Refused says that acknowledgements of a partition were refused.
func Refused(topic string, partition int32, err error) {
	say(map[string]any{
		"event": "refused", "partition": nameOf(topic, partition), "error": err.Error(),
	})
}

// Holding says that the last acquired records wait for a command.
func Holding() { say(map[string]any{"event": "holding"}) }

func nameOf(topic string, partition int32) string { return fmt.Sprintf("%s-%d", topic, partition) }
