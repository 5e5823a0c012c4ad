// Starts an image by testcontainers-go's Kafka module; see ../harness.py for what it is told.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"github.com/testcontainers/testcontainers-go/modules/kafka"
)

func main() {
	if err := start(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func start(image string) error {
	ctx := context.Background()
	container, err := kafka.Run(ctx, image)
	if err != nil {
		return err
	}
	brokers, err := container.Brokers(ctx)
	if err != nil {
		return err
	}
	fmt.Println("started", brokers[0])
	bufio.NewReader(os.Stdin).ReadString('\n')
	return container.Terminate(ctx)
}
