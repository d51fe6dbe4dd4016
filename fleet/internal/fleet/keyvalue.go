package fleet

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// each calls f for each key of a bucket, in the order of the writes, until f returns
// an error.
func each(ctx context.Context, kv jetstream.KeyValue, f func(jetstream.KeyValueEntry) error) error {
	return eachOf(ctx, kv, jetstream.AllKeys, f)
}

// watchTimeout bounds the time without a key, because a cluster without a leader sends none.
const watchTimeout = 10 * time.Second

// eachOf is like each, for the keys that match a pattern.
func eachOf(ctx context.Context, kv jetstream.KeyValue, pattern string, f func(jetstream.KeyValueEntry) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := kv.Watch(ctx, pattern, jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }()
	silence := time.NewTimer(watchTimeout)
	defer silence.Stop()
	for {
		silence.Reset(watchTimeout)
		select {
		case <-silence.C:
			return nats.ErrTimeout
		case e, ok := <-w.Updates():
			if !ok {
				return cmp.Or(ctx.Err(), nats.ErrConnectionClosed)
			}
			if e == nil { // all keys were delivered
				return ctx.Err()
			}
			if err := f(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wrongRevision reports whether an error means that the key was written meanwhile.
func wrongRevision(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
