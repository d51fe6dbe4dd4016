package upload

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"gcsup/backoff"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
)

// storeContext returns ctx for calls of the store. The requests of the store are retried like
// those of an upload with that many bytes at stake. e gets an event for each wait, and the
// logger an entry.
func (u *Uploader) storeContext(ctx context.Context, e *events, atStake func() int64) context.Context {
	return state.WithStoreRetry(ctx, state.StoreRetry{
		Policy: u.opts.Policy,
		For: func() time.Duration {
			if u.opts.RetryFor > 0 {
				return u.opts.RetryFor
			}
			return u.opts.Policy.LongestTotal(backoff.Tries(atStake()))
		},
		Waiting: func(p backoff.Pause, err error) {
			u.opts.Logger.LogAttrs(ctx, slog.LevelInfo, "a request of the store failed", slog.Any("err", err), slog.Int("failures", p.Failures), slog.Duration("wait", p.Delay))
			e.post(Event{Kind: Waiting, Store: true, Delay: p.Delay, Retry: p.Failures, Cause: storeCause(err), Err: err})
		},
	})
}

// nothingAtStake is for storeContext: no bytes are lost if the store fails.
func nothingAtStake() int64 { return 0 }

// storeCall returns ctx for calls of the store that belong to no upload. The caller must call
// done.
func storeCall(ctx context.Context, u *Uploader) (_ context.Context, done func()) {
	e := newEvents(ctx, u, new(label), (&progress{whole: engine.NewPosition(-1)}).describe)
	return u.storeContext(ctx, e, nothingAtStake), func() { e.close(ctx, nil) }
}

// storeCause describes a failed request of the store in a few words: what the store reports of
// itself, and the status or the error of the network.
func storeCause(err error) string {
	failed, ok := errors.AsType[*session.Error](err)
	if !ok {
		return err.Error()
	}
	return strings.TrimSuffix(err.Error(), failed.Error()) + failed.Short()
}
