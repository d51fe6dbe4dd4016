package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Redeliver delivers all tasks of all fleets of a server again, as if no worker had taken them. It is for
// a server that could not write, or was killed: such a server may have saved that a task was
// acknowledged, and still have the task. No worker would get it, and the queue would never be
// empty. Workers find out which files are finished.
func Redeliver(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	streams := js.ListStreams(ctx)
	for info := range streams.Info() {
		if info.Config.Retention != jetstream.WorkQueuePolicy || !strings.HasPrefix(info.Config.Name, streamPrefix) {
			continue
		}
		if err := renewConsumers(ctx, js, info.Config.Name); err != nil {
			return fmt.Errorf("consumer of stream %s: %w", info.Config.Name, err)
		}
	}
	return streams.Err()
}

// renewConsumers replaces the consumer of a stream by one with another name, see Queue.openConsumer.
func renewConsumers(ctx context.Context, js jetstream.JetStream, name string) error {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return err
	}
	consumers := stream.ListConsumers(ctx)
	for info := range consumers.Info() {
		if !strings.HasPrefix(info.Name, consumerPrefix) {
			continue
		}
		if err := stream.DeleteConsumer(ctx, info.Name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
		config := info.Config
		config.Durable = consumerPrefix + rand.Text()[:8]
		config.Name = config.Durable
		_, err := stream.CreateConsumer(ctx, config)
		if api, ok := errors.AsType[*jetstream.APIError](err); err != nil && (!ok || api.ErrorCode != errCodeOneConsumer) {
			return err // errCodeOneConsumer: a worker has created it
		}
	}
	return consumers.Err()
}
