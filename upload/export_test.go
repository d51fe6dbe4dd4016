package upload

import (
	"context"
	"io"
	"time"
)

// What the tests need of the unexported parts.

type RequestSizer struct{ *requestSizer }

func NewRequestSizer(chunkSize int64) RequestSizer     { return RequestSizer{newRequestSizer(chunkSize)} }
func (s RequestSizer) Size() int64                     { return s.size() }
func (s RequestSizer) Passed(n int64, d time.Duration) { s.passed(n, d) }
func (s RequestSizer) Cut(n int64, progress bool)      { s.cut(n, progress) }

func WatchStall(ctx context.Context, timeout time.Duration, rate int64) (context.Context, func(io.Reader) io.Reader, func()) {
	ctx, w := watchStall(ctx, timeout, rate)
	return ctx, w.body, w.stop
}

const CheckpointEvery = checkpointEvery
